"""`python -m tangere` is the command line, as `tangere`."""

from tangere.cli import main

if __name__ == "__main__":
    main(prog_name="tangere")
