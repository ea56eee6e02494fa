"""Every code of the front end with one sentence for `hkc explain`, and the limits that HK4xx are about."""

from __future__ import annotations

NESTING = 50
"""Depth of blocks, of brackets and of expressions."""
RANK = 5
"""Dims of a tensor or tile."""
FILE_BYTES = 2**20
"""Size of a source file."""
SPLIT_FILE = "put kernels into files of their own; `from file import f` shares functions"
KERNEL_OPS = 100_000
"""Operations of a kernel, once all functions are inlined."""
CALLS = 10_000
"""Calls of functions in a kernel, those in other functions included."""
TILE_ELEMENTS = 2**20
"""Elements of one tile."""

CODES: dict[str, str] = {
    "HK101": "The text doesn't continue in a way that the grammar knows at this place.",
    "HK102": "The first line of a kernel, function, loop or branch ends with a colon.",
    "HK103": "Every bracket is closed by one of its kind.",
    "HK104": "Arguments and list items are separated by commas.",
    "HK105": "A text in quotes ends on its own line (with three quotes: on a later one); it documents, or is printed.",
    "HK106": "Indentation is made of spaces, since a tab has no fixed width.",
    "HK107": "A single `=` gives a name to a value; `==` compares.",
    "HK108": "A line at the left margin starts with from, const, tune, def, kernel, example or reference.",
    "HK109": "A word of Python that the language doesn't have.",
    "HK110": "The lines of a block have the same indentation, deeper than the line that opens the block.",
    "HK111": "A character that means nothing outside comments and texts.",
    "HK112": "A comparison has two sides; combine several comparisons by where().",
    "HK113": "Only names are assigned to; memory is written by store().",
    "HK114": "A number is decimal or hexadecimal, with at most 64 bits, or a float within the range of f64.",
    "HK115": "An operator, comma or bracket is followed by an expression.",
    "HK116": "Every parameter of a kernel has a type.",
    "HK121": "The file can't be read as UTF-8 text.",
    "HK122": "A file holds at least one kernel.",
    "HK123": "`from file import function` takes from a file in the same folder, which takes nothing from this one.",
    "HK200": "An op of the tile dialect can't take these operands.",
    "HK201": "A value of another kind is needed: a tile, a tensor, an index, a number or a dtype.",
    "HK202": "Shapes broadcast as in NumPy: from the right, extents are equal or one of them is 1.",
    "HK203": "dot(a, b) needs as many columns in `a` as rows in `b`, and an accumulator of the product's shape.",
    "HK204": "Operands have one dtype, and one that the operation knows; nothing is converted silently.",
    "HK205": "Memory holds one dtype, and what is stored or filled in has it; cast(x, dtype) converts.",
    "HK206": "The number of offsets, extents or dims, or an axis, doesn't fit the rank.",
    "HK207": "A variable keeps its shape and dtype from one iteration to the next, and from one branch to the other.",
    "HK208": "This value shapes the code, so it must be known when the kernel is compiled.",
    "HK209": "`/` divides floats; whole numbers are divided by `//` (rounds down) or cdiv (rounds up).",
    "HK210": "A number adopts the dtype of what it meets and must lie within its range.",
    "HK211": "A call needs exactly the arguments in its spelling.",
    "HK212": "A statement that computes something and keeps nothing has no effect.",
    "HK213": "A computation with numbers at compile time has no result.",
    "HK214": "An assignment has as many names as values.",
    "HK215": "A condition is the same for the whole workgroup; where() chooses element by element.",
    "HK217": "A while loop ends: its condition depends on what the loop changes.",
    "HK218": "An assertion holds, as far as can be known when the kernel is compiled.",
    "HK301": "A name is used before it is given a value.",
    "HK302": "A variable that first gets its value inside a block ends with it, unless every branch gives it one.",
    "HK303": "Only variables can be assigned to, not parameters, dims, constants, loop variables or functions.",
    "HK304": "A name is defined twice, or is a word of the language.",
    "HK305": "A value given from outside names a constant of the file and is of the same kind.",
    "HK306": "A parameter is a tensor, global[dtype, dim, …], or a number, given by its dtype.",
    "HK307": "This word is none of those that are possible here.",
    "HK308": "A hint that changes nothing is refused rather than ignored.",
    "HK309": "tile_ids defines the grid: once, outside loops, from dims, scalars and constants.",
    "HK310": "The example and reference lines speak of the kernels' dims, scalars and tensors.",
    "HK311": "Functions are inlined where they are called, so none can call itself.",
    "HK312": "A function returns in its last line, and only there.",
    "HK313": "Tune parameters have values among their candidates, for which the constraints after `where` hold.",
    "HK431": "The extent of a tile is a power of two or a multiple of 16.",
    "HK432": "Blocks, brackets and expressions nest up to a fixed depth.",
    "HK433": "A source file has a limited size.",
    "HK434": "A tile has a limited number of elements, since it lives in registers.",
    "HK436": "The step of a range is not 0.",
    "HK437": "A kernel has a limited number of operations and calls, once its functions are inlined.",
    "HK451": "A dot needs a matrix instruction of the chip for its element types.",
    "HK452": "The inner extent of a scaled dot is a multiple of that of a scaled matrix instruction of the chip.",
    "HK453": "All LDS buffers of a kernel fit the LDS that the chip has for a workgroup.",
    "HK455": "Narrow floats are stored, moved, cast and multiplied; to compute, a dtype must have arithmetic.",
    "HK456": "An atomic update needs a dtype that the chip can update atomically.",
    "HK459": "A tile leaves registers for others: one that takes all of a wave's would be spilled.",
    "HK471": "The text of a module is MLIR that all verifiers accept.",
    "HK472": "A module is written in the version of the dialects that this hkc reads.",
    "HK473": "The forms that a module claims to have hold.",
    "HK474": "A module names one chip, and says of its kernel what a launch needs to know.",
    "HK475": "A pass runs on modules that have the forms it needs; `hkc opt --list` gives the order.",
    "HK476": "A pass is one of ours (`hkc opt --list`) or of MLIR's.",
    "HK477": "The wave ops of a module are ones that its chip has.",
    "HK450": "A request about schedules, stages or registers is met, or refused with the reason: it is never ignored.",
    "HK454": "A file that is compiled or run has one kernel, or the one that is meant is named.",
}
