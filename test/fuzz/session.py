"""A session with the server, for the programs beside this one."""
import subprocess


class Session:
    """One psql that stays connected."""

    def __init__(self, allowed):
        self.allowed = allowed
        self.message = ""
        self.psql = subprocess.Popen(["psql", "-XqAt", "-v", "VERBOSITY=sqlstate"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True, encoding="utf-8")

    def run(self, sql):
        """The lines, or the SQLSTATE of a documented error, which stays in `message`; raises what must not be."""
        self.psql.stdin.write(sql + ";\n\\echo --end-- :SQLSTATE :LAST_ERROR_MESSAGE\n")
        self.psql.stdin.flush()
        lines = []
        while not (line := self.psql.stdout.readline()).startswith("--end--"):
            if line == "":
                raise ConnectionError("the connection is lost")
            lines.append(line.rstrip("\n"))
        state, self.message = line.split()[1], line
        if state == "00000":
            return lines, None
        if state not in self.allowed:
            raise AssertionError(f"SQLSTATE {state}")
        return None, state
