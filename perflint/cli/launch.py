"""The process that `perflint trace` becomes: the tracer, and the program.

Python runs it as a file: with `-m` it would look for the modules of the tracer in the working directory first.
"""

# Loaded with the interpreter. All others must wait, even `__future__`: a folder of perflint is the first of the path.
import sys

if not sys.flags.safe_path:
    del sys.path[0]
# perflint need not be installed.
sys.path.append(__file__.rpartition("perflint")[0])

# Before the program: it may change where modules are looked for.
from perflint.output.terminal import Style, printable, wants_colours
from perflint.output.trace import trace_text
from perflint.output.writer import message_text
from perflint.tracer.file import TraceError
from perflint.tracer.options import Options
from perflint.tracer.runner import run_program
from perflint.tracer.session import Session

sys.path.pop()


def main() -> None:
    """Run what the command line says: the options as JSON, whether to colour, `script` or `module`, the program."""
    options, colour, kind, *program = sys.argv[1:]

    def done(session: Session, error: TraceError | None) -> None:
        # What the program made of `sys.stderr` is its own.
        stream = sys.__stderr__
        if stream is None or stream.closed or session.trace is None:
            return
        style = Style(wants_colours(colour, stream))
        if session.kept is not None:
            ended = f"the program ended ({session.trace.header.ended}) before anything was recorded"
            kept = f"{printable(str(session.kept))} is still the trace of an earlier run"
            stream.write(f"{style('perflint trace:', 'bold')} {ended}; {kept}.\n")
        else:
            stream.write(trace_text(session.trace, session.written, style))
        if error is not None:
            stream.write(message_text("error", error.message, error.help, style))
        stream.flush()

    run_program(Options.from_json(options), kind == "module", program, done)


if __name__ == "__main__":
    main()
