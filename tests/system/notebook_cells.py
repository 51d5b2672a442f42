# ruff: noqa: E501 - a table has one row per line
"""Forty cells as people paste them from notebooks and scripts, and what they expect of each."""

from typing import Any, NamedTuple


class Pasted(NamedTuple):
    """One cell, and what comes back: `value` is the result, unless `same` says that of Python.

    With `same` the cell prints its value as its last act under plain Python, and both must agree.
    """

    name: str
    source: str
    value: Any = None
    stdout: str | None = None
    artifacts: tuple[str, ...] = ()
    error: str | None = None


FRAME = (
    "import pandas as pd\ndf = pd.DataFrame({'city': ['Oslo', 'Rome', 'Rome'], 'n': [1, 2, 4]})\n"
)
PLOT = "import matplotlib.pyplot as plt\n"
TABLE = ("result.csv", "result.parquet")

CELLS = [
    Pasted("an expression", "sum(n * n for n in range(10))", 285),
    Pasted("printing", "for n in range(3):\n    print(n)", None, "0\n1\n2\n"),
    Pasted("a frame", FRAME + "df", [
        {"city": "Oslo", "n": 1}, {"city": "Rome", "n": 2}, {"city": "Rome", "n": 4},
    ], artifacts=TABLE),
    Pasted("describe keeps its labels", FRAME + "df.describe().loc[['count', 'mean']].round(2)", [
        {"index": "count", "n": 3.0}, {"index": "mean", "n": 2.33},
    ], artifacts=TABLE),
    Pasted("groupby keeps its labels", FRAME + "df.groupby('city').n.sum()", [
        {"city": "Oslo", "n": 1}, {"city": "Rome", "n": 6},
    ], artifacts=TABLE),
    Pasted("value_counts", FRAME + "df.city.value_counts()", [
        {"city": "Rome", "count": 2}, {"city": "Oslo", "count": 1},
    ], artifacts=TABLE),
    Pasted("a pivot table", FRAME + "df.pivot_table(index='city', values='n', aggfunc=['sum', 'max'])", [
        {"city": "Oslo", "sum / n": 1, "max / n": 1}, {"city": "Rome", "sum / n": 6, "max / n": 4},
    ], artifacts=TABLE),
    Pasted("two index levels", FRAME + "df.groupby(['city', 'n']).size()", [
        {"city": "Oslo", "n": 1, "value": 1}, {"city": "Rome", "n": 2, "value": 1},
        {"city": "Rome", "n": 4, "value": 1},
    ], artifacts=TABLE),
    Pasted("equal column names", "import pandas as pd\npd.concat([pd.DataFrame({'a': [1]}), pd.DataFrame({'a': [2]})], axis=1)",
           [{"a": 1, "a.1": 2}], artifacts=TABLE),
    Pasted("a frame with lists", "import polars as pl\npl.DataFrame({'a': [[1, 2], [3]]})",
           [{"a": [1, 2]}, {"a": [3]}], artifacts=("result.parquet",)),
    Pasted("missing values and dates", "import pandas as pd\npd.DataFrame({'d': pd.to_datetime(['2024-01-02', None]), 'x': [1.5, None]})", [
        {"d": "2024-01-02T00:00:00", "x": 1.5}, {"d": None, "x": None},
    ], artifacts=TABLE),
    Pasted("several frames", FRAME + "df.head(1), df.tail(1)", [
        [{"city": "Oslo", "n": 1}], [{"index": 2, "city": "Rome", "n": 4}],
    ], artifacts=(*TABLE, "result-2.csv", "result-2.parquet")),
    Pasted("to_csv in the working folder", FRAME + "df.to_csv('out.csv', index=False)", None,
           artifacts=("out.csv",)),
    Pasted("reading back what was written", "open('a.txt', 'w').write('hi')\nopen('a.txt').read()", "hi",
           artifacts=("a.txt",)),
    Pasted("a figure", PLOT + "plt.plot([1, 2, 3])\nplt.title('t');", None, artifacts=("figure-1.png",)),
    Pasted("plt.show", PLOT + "plt.plot([1, 2, 3])\nplt.show()", None, artifacts=("figure-1.png",)),
    Pasted("a loop with plt.show", PLOT + "for k in range(3):\n    plt.plot([0, k])\n    plt.show()", None,
           artifacts=("figure-1.png", "figure-2.png", "figure-3.png")),
    Pasted("savefig", PLOT + "plt.plot([1, 2])\nplt.savefig('plot.png')\nplt.close()", None, artifacts=("plot.png",)),
    Pasted("%matplotlib inline", "%matplotlib inline\n" + PLOT + "plt.plot([1, 2])\nplt.show()", None,
           artifacts=("figure-1.png",)),
    Pasted("a picture", "from PIL import Image\nImage.new('RGB', (4, 4), 'red')",
           {"artifacts": ["result.png"]}, artifacts=("result.png",)),
    Pasted("a styled frame", FRAME + "df.style.highlight_max(subset='n')", {"artifacts": ["result.html"]},
           artifacts=("result.html",)),
    Pasted("a plotly figure", "import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[1, 2]))",
           {"artifacts": ["result.json"]}, artifacts=("result.json",)),
    Pasted("an altair chart", "import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'x': [1]})).mark_bar().encode(x='x:Q')",
           {"artifacts": ["result.json"]}, artifacts=("result.json",)),
    Pasted("_repr_html_", "class A:\n    def _repr_html_(self): return '<b onclick=x()>hi</b><script>x()</script>'\n    def __repr__(self): return 'A'\nA()",
           {"artifacts": ["result.html"]}, artifacts=("result.html",)),
    Pasted("display", FRAME + "display(df.head(1))\ndisplay('text')\n1", 1, "text\n",
           artifacts=("output-1.csv", "output-1.parquet")),
    Pasted("top-level await", "import asyncio\nawait asyncio.sleep(0, 'done')", "done"),
    Pasted("asyncio.run", "import asyncio\nasync def f():\n    return 3\nasyncio.run(f())", 3),
    Pasted("a script with its guard", "def main():\n    print('once')\n\nif __name__ == '__main__':\n    main()", None, "once\n"),
    Pasted("sys.exit(main())", "import sys\ndef main():\n    print('once')\n    return 0\nsys.exit(main())", None, "once\n"),
    Pasted("argparse", "import argparse\np = argparse.ArgumentParser()\np.add_argument('-n', type=int, default=2)\np.parse_args().n", 2),
    Pasted("a pool of processes", "from multiprocessing import Pool\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with Pool(2) as p:\n        print(p.map(f, [1, 2]))", None, "[1, 4]\n"),
    Pasted("a pool of threads", "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as e:\n    found = list(e.map(abs, [-1, 2]))\nfound", [1, 2]),
    Pasted("subprocess", "import subprocess\nsubprocess.run(['python3', '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout", "42\n"),
    Pasted("a class and a dataclass", "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\nP(1)", {"x": 1, "y": 2}),
    Pasted("a generator", "(n for n in range(3))", {"repr": "<generator object <genexpr>>"}),
    Pasted("a warning", "import warnings\nwarnings.warn('careful')\n5", 5),
    Pasted("logging", "import logging\nlogging.basicConfig(level='INFO')\nlogging.info('x')\n7", 7),
    Pasted("a bug after an import that probes the network", "import requests\nint('abc')", error="PYTHON_EXCEPTION"),
    Pasted("!pip install", "!pip install pandas", error="PYTHON_EXCEPTION"),
    Pasted("a sqlite file", "import sqlite3\nc = sqlite3.connect('my.db')\nc.execute('create table t (x)')\nc.execute('insert into t values (3)')\nc.commit()\nc.execute('select sum(x) from t').fetchone()", [3], artifacts=("my.db",)),
]  # fmt: skip
