"""How was the score earned? Audits the runs behind a score: what was exposed, used, and credited.

It reads retained bundles (:mod:`irtaudit.protocol.bundle`), filters them for candidates
(:mod:`irtaudit.protocol.candidates`), lets a judge label each (:mod:`irtaudit.protocol.judges`), checks every
label against the bundle (:mod:`irtaudit.protocol.validation`) and aggregates what holds
(:mod:`irtaudit.protocol.results`). It never runs, replays, changes or re-scores a run.
"""
