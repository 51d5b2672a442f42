"""Commands and environments that `latex` handles itself and does not leave to the converter."""

TEXT_COMMANDS = {
    r"\text": "",
    r"\textrm": "",
    r"\textnormal": "",
    r"\textup": "",
    r"\textmd": "",
    r"\mbox": "",
    r"\hbox": "",
    r"\textbf": "bold",
    r"\textit": "italic",
    r"\emph": "italic",
    r"\textsl": "italic",
    r"\textsf": "sans",
    r"\texttt": "mono",
}
TEXT_CHARACTERS = {
    **{f"\\{sign}": sign for sign in "%&$#_{}"},
    r"\ ": " ",
    r"\,": "\u2009",
    r"\;": "\u2005",
    r"\quad": "\u2003",
    r"\ldots": "…",
    r"\dots": "…",
    r"\textbackslash": "\\",
    r"\degree": "°",
    r"\S": "§",
}
CLASS_COMMANDS = {
    r"\mathord": "ord",
    r"\mathop": "op",
    r"\mathbin": "bin",
    r"\mathrel": "rel",
    r"\mathopen": "open",
    r"\mathclose": "close",
    r"\mathpunct": "punct",
    r"\mathinner": "inner",
}
# The name that the converter knows. Empty: the environment is dropped and its content kept.
ENVIRONMENTS = {
    **{name: name for name in ("matrix", "pmatrix", "bmatrix", "Bmatrix", "vmatrix", "Vmatrix")},
    **{name: name for name in ("smallmatrix", "array", "cases", "split")},
    **dict.fromkeys(("align", "align*", "aligned", "eqnarray", "eqnarray*", "flalign*"), "align*"),
    **dict.fromkeys(("gather", "gather*", "gathered", "multline", "multline*"), "displaylines"),
    **dict.fromkeys(("equation", "equation*", "displaymath", "math"), ""),
    **dict.fromkeys(("dcases", "cases*", "dcases*"), "cases"),
}
TEXT_CASES = {"cases*", "dcases*"}  # the second column is text
DISPLAY_CASES = {"dcases", "dcases*"}
NEGATED = {"=": r"\neq ", "<": r"\nless ", ">": r"\ngtr "}
RENAMED = {r"\cfrac": r"\dfrac", r"\tag*": r"\tag", r"\hspace*": r"\hspace"}
COLOR_ARGUMENTS = {r"\color": 1, r"\textcolor": 1, r"\colorbox": 1, r"\fcolorbox": 2}
# How many lengths follow a command.
LENGTH_ARGUMENTS = {
    **dict.fromkeys((r"\hspace", r"\hspace*", r"\mspace", r"\kern", r"\mkern"), 1),
    **dict.fromkeys((r"\hskip", r"\mskip", r"\raise", r"\lower", r"\moveleft", r"\moveright"), 1),
    r"\above": 1,
    r"\rule": 2,
}
# In em, for letters of 10 points.
UNITS = {"em": 1.0, "ex": 0.45, "mu": 1 / 18, "pt": 0.1, "bp": 0.1, "dd": 0.107, "sp": 0.1 / 65_536}
UNITS |= {"pc": 1.2, "cc": 1.284, "mm": 0.2845, "cm": 2.845, "in": 7.227}
DROPPED = {r"\nonumber", r"\notag", r"\displaylimits", r"\allowbreak", r"\nobreak", r"\relax"}
DROPPED_WITH_ARGUMENT = {r"\label"}
DEFINING = {
    r"\newcommand",
    r"\renewcommand",
    r"\providecommand",
    r"\newenvironment",
    r"\def",
    r"\gdef",
    r"\edef",
    r"\let",
    r"\DeclareMathOperator",
}
FORBIDDEN = {r"\href", r"\style", r"\class", r"\verb", r"\unicode", r"\require", r"\input"}
