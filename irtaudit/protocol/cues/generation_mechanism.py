"""Cues of generator_regularity: order, shape, seed or template of the task is predicted."""

from __future__ import annotations

from irtaudit.protocol.cues.rule import WORDS, Found, Names, Rule, event_rule, pattern

_SEEDS = pattern(
    r"\bfor +\w*seed\w* +in\b[^\n]{0,80}",
    r"\bfor +\w+ +in +range\([^\n]{1,40}\)[^\n]{0,40}:[\s\S]{0,160}?"
    r"(?:random\.seed|np\.random\.seed|default_rng|RandomState|manual_seed|random\.Random)\(\w+",
    r"\b(?:brute[- ]?forc\w*|search\w*|enumerat\w*|recover\w*|crack\w*|guess\w*|predict\w*"
    r"|scan\w*)\b[^\n.]{0,60}"
    r"\bseeds?\b[^\n]{0,40}",
    r"\bseeds?\b[^\n.]{0,50}\b(?:brute[- ]?forc\w*|recover\w*|determinis\w*|fixed|same|known"
    r"|reproduc\w*|match\w*)\b"
    r"[^\n]{0,40}",
    r"\breplay\w*\b[^\n.]{0,40}\b(?:rng|random number|generator)\b[^\n]{0,40}",
)
_ORDER = pattern(
    r"\btopological(?:ly)?\b[^\n]{0,80}",
    r"\b(?:lower|smaller|earlier|higher|larger) (?:index|indices|numbered|columns?)\b[^\n]{0,80}",
    r"\b(?:always|consistently|invariably|every time)\b[^\n.]{0,60}\b(?:first|last|sorted|in order"
    r"|same (?:order|"
    r"position|place|shape|option))\b[^\n]{0,40}",
    r"\b(?:order|position|index|shape) of the (?:columns?|variables?|items?|options?|choices"
    r"|outputs?|rows?)\b"
    r"[^\n]{0,60}",
    r"\bthe correct (?:option|choice|answer) is (?:always|usually|often)\b[^\n]{0,60}",
    r"\bj *< *i\b[^\n]{0,60}\bparents?\b[^\n]{0,40}",
    r"\bparents?\b[^\n]{0,60}\b(?:j *< *i|i *> *j|range\(i\)|\[:i\])[^\n]{0,40}",
)
_TEMPLATE = pattern(
    r"(?:generate|generator|gen_|make_(?:data|task|instance)|sampler|template)[\w-]{0,40}\.(?:py"
    r"|js|ts|jinja2?|txt|ya?ml)\b",
    r"\b(?:task|question|instance|problem|data)s? (?:is|are|was|were|seems?"
    r"|looks?)[^\n.]{0,40}\b(?:templated?|"
    r"generated|synthetic)\b[^\n]{0,60}",
    r"\b(?:parse|match|exploit|reverse[- ]engineer)\w*[^\n.]{0,40}\b(?:template|generator)\b[^\n]{0,40}",
    r"\bsame template\b[^\n]{0,60}",
)


@event_rule("generator_regularity", kinds=WORDS, needles=("seed", "replay", "default_rng", "randomstate"))
def seed_search(text: str, names: Names) -> Found:  # noqa: ARG001 - the signature of a rule
    """Loops over seeds, or speaks of recovering or replaying the random generator."""
    return _SEEDS.search(text)


@event_rule(
    "generator_regularity",
    kinds=WORDS,
    needles=(
        "topolog",
        "index",
        "indices",
        "numbered",
        "always",
        "consistent",
        "every time",
        " of the ",
        "parent",
    ),
)
def order_assumption(text: str, names: Names) -> Found:  # noqa: ARG001 - the signature of a rule
    """Relies on the order, position or shape in which the generator writes things out."""
    return _ORDER.search(text)


@event_rule(
    "generator_regularity",
    kinds=WORDS,
    needles=("generat", "template", "synthetic", "gen_", "sampler", "make_"),
)
def template_parsing(text: str, names: Names) -> Found:  # noqa: ARG001 - the signature of a rule
    """Reads the generator, or takes the task apart by the template it was made from."""
    return _TEMPLATE.search(text)


RULES: tuple[Rule, ...] = (seed_search, order_assumption, template_parsing)
