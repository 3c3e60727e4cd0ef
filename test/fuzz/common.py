"""What the programs beside this one share."""
import subprocess


def some(dice, *chances):
    """Named arguments, each there by chance: (share, name, values to choose from)."""
    return [f"{name} => {dice.choice(values)}" for share, name, values in chances if dice.random() < share]


class Session:
    """One psql that stays connected."""

    def __init__(self, allowed=()):
        self.allowed = allowed
        self.message = ""
        self.psql = subprocess.Popen(["psql", "-XqAt", "-v", "VERBOSITY=sqlstate"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True, encoding="utf-8")

    def ask(self, sql):
        """The lines and the SQLSTATE; the error stays in `message`. Raises when the server is gone."""
        self.psql.stdin.write(sql + ";\n\\echo --end-- :SQLSTATE :LAST_ERROR_MESSAGE\n")
        self.psql.stdin.flush()
        lines = []
        while not (line := self.psql.stdout.readline()).startswith("--end--"):
            if line == "":
                raise ConnectionError("the connection is lost")
            lines.append(line.rstrip("\n"))
        self.message = line
        return lines, line.split()[1]

    def run(self, sql):
        """The lines, or the SQLSTATE of a documented error; raises what must not be."""
        lines, state = self.ask(sql)
        if state == "00000":
            return lines, None
        if state not in self.allowed:
            raise AssertionError(f"SQLSTATE {state}")
        return None, state
