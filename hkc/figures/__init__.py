"""What was decided about a kernel, as data (`facts`), drawings (`drawings`) and a page of its own (`page`)."""
