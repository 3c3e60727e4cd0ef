"""What bench/sql and bench/toast share: sessions of the server of PGHOST."""
import subprocess
import sys


class Session:
    """One psql, that is one session."""

    def __init__(self):
        self.psql = subprocess.Popen(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def run(self, sql):
        self.psql.stdin.write(sql + ";\n\\echo --end--\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line == "--end--\n":
                return lines
            lines.append(line.rstrip("\n"))
        sys.exit("psql stopped at: " + sql)

    def milliseconds(self, sql):
        return float(self.run(f"SELECT bench_ms($bench${sql}$bench$)")[0])

    def number(self, sql):
        return float(self.run(sql)[0])
