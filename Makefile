help demo test check test-all setup:
	@./dev $@

.PHONY: help demo test check test-all setup
