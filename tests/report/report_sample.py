"""A report as an audit would hand it in: run this file to write it to a folder and look at it.

The comparison of item response models is the one printed in "Searching for 'Harmful Refusal'" (see
tests/reference/harmful_refusal_by_model.md). Models, items and runs are simulated.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from irtaudit.report import figures
from irtaudit.report.curves import small_curves
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.page import write_report
from irtaudit.report.section import Figure, Fold, Quote, Section, Verdict

PRINTED = Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv"


def comparison() -> pd.DataFrame:
    frame = pd.read_csv(PRINTED)
    frame.insert(1, "structure", frame["model"].str.split("_").str[0])
    return frame.sort_values("log_loss", ignore_index=True)


def answer() -> Section:
    return Section(
        place="answer",
        claim="A confirmatory model with three dimensions predicts held-out responses better than the best "
        "one-dimensional model by 0.064 in log-loss (95 % interval 0.058 to 0.070), far beyond the margin of "
        "0.007.",
        verdict=Verdict(
            reading="HarmBench score = harmful refusal",
            word="not supported",
            holds_for={
                "Models": "81 in HELM Safety v1.17.0",
                "Items": "398 of 400 HarmBench behaviours",
                "Version": "irtaudit 0.1.0",
                "Plan": "sha256 4be1c7f09a52d3c8…, pre-specified",
            },
        ),
    )


def picture() -> Section:
    frame = comparison()
    sd = frame["log_loss_sd"]
    drawing = dot_interval_figure(
        [*frame["model"], "item_means", "item_plus_subject"],
        [*frame["log_loss"], 0.545, 0.352],
        [*(frame["log_loss"] - sd), 0.541, 0.348],
        [*(frame["log_loss"] + sd), 0.549, 0.356],
        groups=[*frame["structure"], "baseline", "baseline"],
        lines={"best one-dimensional": 0.3223, "better by the margin": 0.3151, "item means": 0.545},
        emphasis=["confirmatory_3d_2pl", "confirmatory_7d_2pl", "exploratory_3d_2pl"],
        notes={"unidimensional_2pl": "failed fit"},
        xlabel="Held-out log-loss, mean and SD over five splits; lower is better",
        alt="Every confirmatory model predicts held-out responses better than every one-dimensional model.",
        caption="Each dot is an item response model, its line the spread over splits. Dots left of the line "
        "“better by the margin” beat the best one-dimensional model by more than the plan asks.",
    )
    return Section(
        place="picture",
        claim="Models with several dimensions predict what the best one-dimensional model misses.",
        figures=[drawing],
        table=frame,
        columns={
            "model": "Name of the item response model: structure, dimensions, family.",
            "log_loss": "Mean held-out log-loss over five splits.",
            "log_loss_sd": "Standard deviation of the log-loss over splits.",
            "fitted_quantities": "Item parameters and latent scores together.",
        },
        formats={"log_loss": ".4f", "log_loss_sd": ".4f"},
        caption="All fitted item response models, best first.",
        file="comparison.csv",
    )


def scree(axes) -> None:
    ranks = np.arange(1, 9)
    axes.fill_between(ranks, 3.1 - 0.15 * ranks, 3.9 - 0.17 * ranks, color=figures.GREY, alpha=0.35, lw=0)
    axes.plot(ranks, [128, 31, 14, 9, 6.1, 4.4, 3.2, 2.4], "o-", color=figures.BLUE)
    axes.set(xlabel="rank", ylabel="eigenvalue", yscale="log", yticks=[2, 5, 10, 50, 100])
    axes.set_yticklabels(["2", "5", "10", "50", "100"])
    axes.annotate("observed", (2, 31), (8, 3), textcoords="offset points")
    axes.annotate("95 % of shuffled panels", (4.5, 2.75), (0, -14), textcoords="offset points", ha="center")


def correlations(axes) -> None:
    pairs = ["standard, contextual", "contextual, copyright", "standard, copyright"]
    r, half = np.array([0.785, 0.603, 0.451]), np.array([0.08, 0.13, 0.15])
    axes.errorbar(r, [2, 1, 0], xerr=half, fmt="^", color=figures.GREEN, elinewidth=2)
    axes.set(
        yticks=[2, 1, 0], yticklabels=pairs, xlim=(0, 1), ylim=(-0.6, 2.6), xlabel="correlation of factors"
    )
    axes.axvline(1, color="black", lw=0.8, ls=":")


def evidence() -> list[Section]:
    return [
        Section(
            place="evidence",
            title="Held-out comparison",
            claim="Three dimensions lower held-out log-loss by 0.064 (95 % interval 0.058 to 0.070) in all "
            "five splits.",
            figures=[
                figures.draw(
                    differences,
                    alt="All five gains lie between 0.060 and 0.067, far above zero and the margin.",
                    caption="Gain over the best one-dimensional model, split by split. Zero means no gain.",
                    height=2.1,
                )
            ],
            how="Five repeated 80/20 splits, paired differences, t interval corrected for their overlap.",
            otherwise="An upper limit below the margin of 0.007 for every challenger, with power of 0.80.",
            table=pd.DataFrame({"split": [1, 2, 3, 4, 5], "gain": [0.0668, 0.0602, 0.0651, 0.0634, 0.0656]}),
            columns={"gain": "Log-loss of the best one-dimensional model minus that of the challenger."},
            caption="Paired gains by split.",
        ),
        Section(
            place="evidence",
            title="Eigenvalues",
            claim="The largest eigenvalue of the one-factor residuals is 31, where shuffled panels reach 3.8 "
            "(p = 0.001, 1,000 simulated panels).",
            figures=[
                figures.draw(
                    scree,
                    alt="Eight eigenvalues lie above the band of shuffled panels.",
                    caption="Eigenvalues of the item correlations above the grey band are more than chance.",
                )
            ],
            how="Bernoulli null with the items' own totals, eigenvalues on the side of the models.",
            otherwise="A largest eigenvalue inside the band of the null.",
        ),
        Section(
            place="evidence",
            title="Factor correlations",
            claim="Copyright items share little with standard ones: their factor correlation is 0.45 "
            "(95 % interval 0.30 to 0.60).",
            figures=[
                figures.draw(
                    correlations,
                    alt="No interval of the three factor correlations reaches one.",
                    caption="Correlation of 1 would mean one dimension.",
                    height=1.9,
                )
            ],
            how="Second moments of theta in the confirmatory model, population interval.",
            otherwise="Intervals that reach 0.95 or more.",
        ),
        Section(
            place="evidence",
            title="DIF under the single score",
            claim="13 of 398 items show DIF between OpenAI and Anthropic models by Mantel-Haenszel "
            "(family-wise 5 %).",
            how="Three ability bands, 5,000 simulated matrices without DIF, cut-off on the maximum.",
            otherwise="No item beyond the family-wise cut-off, with power of 0.80 for a shift of 2.5 logits.",
        ),
    ]


def differences(axes) -> None:
    gains = [0.0668, 0.0602, 0.0651, 0.0634, 0.0656]
    axes.plot(gains, range(5), "^", color=figures.GREEN)
    axes.axvline(0, color="black", lw=0.8)
    axes.axvline(0.007, color="black", lw=0.8, ls="--")
    axes.annotate("margin", (0.007, 4.4), (4, 0), textcoords="offset points")
    axes.set(
        yticks=range(5),
        yticklabels=[f"split {i}" for i in range(1, 6)],
        ylim=(-0.6, 4.8),
        xlabel="gain in log-loss",
    )


def limits() -> list[Section]:
    return [
        Section(
            place="limit",
            claim="Eleven Anthropic models are a small group.",
            text="Shifts below 2.5 logits would be missed more often than found (power 0.27 at 1.5 logits).",
        ),
        Section(
            place="limit",
            claim="Models of one developer resemble each other.",
            text="Families share training data, so 81 models count for fewer than 81 independent ones.",
        ),
        Section(
            place="limit",
            claim="One fit failed: unidimensional_2pl has a worse training fit than the nested 1PL.",
        ),
    ]


def models(n: int = 81) -> Section:
    rng = np.random.default_rng(2026)
    theta = np.sort(rng.normal(size=n))[::-1]
    sd = rng.uniform(0.12, 0.3, size=n)
    frame = pd.DataFrame(
        {
            "developer": rng.choice(["OpenAI", "Anthropic", "Meta", "Google", "unknown"], size=n),
            "passed": (398 / (1 + np.exp(-theta))).astype(int),
            "theta": theta,
            "theta_low": theta - 1.96 * sd,
            "theta_high": theta + 1.96 * sd,
            "rank_low": np.maximum(1, np.arange(n) - 4),
            "rank_high": np.minimum(n, np.arange(n) + 6),
        },
        index=pd.Index([f"simulated-model-{i:02d}" for i in range(n)], name="subject"),
    )
    return Section(
        place="explore",
        title="Models",
        claim=f"{n} simulated models, ordered by theta; neighbours within an interval are not told apart.",
        table=frame,
        columns={
            "subject": "Name of the model.",
            "passed": "Items passed.",
            "theta": "Posterior mean of the ability.",
            "theta_low": "Lower end of the 95 % interval of theta.",
            "theta_high": "Upper end of the 95 % interval of theta.",
            "rank_low": "Best rank within the 95 % interval.",
            "rank_high": "Worst rank within the 95 % interval.",
        },
        caption="Abilities under the one-dimensional model, with intervals.",
        file="abilities.csv",
    )


def items(n: int = 500, curves: int = 24) -> Section:
    rng = np.random.default_rng(2027)
    slope, difficulty = rng.lognormal(0.2, 0.4, size=n), rng.normal(size=n)
    names = [f"item_{i:03d}" for i in range(n)]
    frame = pd.DataFrame(
        {
            "category": rng.choice(["standard", "contextual", "copyright"], size=n),
            "observed": 81,
            "pass_rate": 1 / (1 + np.exp(difficulty)),
            "difficulty": difficulty,
            "difficulty_sd": rng.uniform(0.1, 0.4, size=n),
            "discrimination": slope,
            "fit_p": rng.uniform(0.0001, 1, size=n),
            "dif_log_odds": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
            "flagged": rng.uniform(size=n) < 0.03,
        },
        index=pd.Index(names, name="item"),
    )
    return Section(
        place="explore",
        title="Items",
        claim=f"{n} simulated items; {int(frame['flagged'].sum())} are flagged.",
        table=frame,
        columns={
            "item": "Name of the item; a link opens its curve.",
            "difficulty": "Theta at which half of the models pass.",
            "discrimination": "Slope of the item response curve at its difficulty.",
            "fit_p": "p-value of the item-fit test, by simulation.",
            "dif_log_odds": "Log odds ratio between the groups; a dash means not testable.",
        },
        formats={"pass_rate": ".1%"},
        caption="Difficulty, discrimination, fit and flags.",
        file="items.csv",
        folds_title="Item response curves",
        folds=[
            Fold(title=names[i], figures=[item_curve(names[i], slope[i], difficulty[i])])
            for i in range(curves)
        ],
    )


def item_curve(name: str, slope: float, difficulty: float) -> Figure:
    theta = np.linspace(-3, 3, 41)
    curve = 1 / (1 + np.exp(-slope * (theta - difficulty)))
    at = np.array([-1.2, 0.0, 1.2])
    return small_curves(
        theta,
        {"OpenAI": curve, "Anthropic": 1 / (1 + np.exp(-slope * (theta - difficulty - 0.5)))},
        points={
            "OpenAI": (at, np.clip(curve[[12, 20, 28]] + 0.05, 0, 1)),
            "Anthropic": (at, [0.1, 0.4, 0.7]),
        },
        xlabel="theta",
        ylabel="share that passes",
        alt=f"The curve of {name} rises through one half at theta {difficulty:.1f}.",
        caption="Lines: fitted; dots: observed share in three ability bands.",
    )


def runs() -> Section:
    return Section(
        place="explore",
        title="Runs",
        claim="One of two simulated runs is credited for a withheld file.",
        table=pd.DataFrame({"run": ["run-1", "run-2"], "state": ["positive", "negative"]}),
        folds_title="Quoted evidence",
        folds=[
            Fold(
                title="run-1",
                text="The agent reads the reference before it submits.",
                quotes=[Quote(text="$ cat tests/gold.txt\n42", source="T/trajectory.jsonl, events 12 to 13")],
            )
        ],
    )


def method() -> list[Section]:
    return [
        Section(
            place="method",
            title="Screening",
            claim="2 of 400 items are dropped because every model passes them.",
            table=pd.DataFrame(
                {"axis": "item", "name": ["item_017", "item_303"], "reason": "constant: always passed"}
            ),
            file="dropped.csv",
        ),
        Section(
            place="method",
            title="Settings",
            claim="Everything random has a seed.",
            facts={
                "Splits": "5, held-out share 20 %, seeds 2026 to 2030",
                "Restarts": "20 each, seeds 0 to 19",
                "Preset": "default",
                "Data": "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "Time": "92 s on 2 cores",
            },
        ),
    ]


@cache
def sections() -> tuple[Section, ...]:
    return (answer(), picture(), *evidence(), *limits(), models(), items(), runs(), *method())


def write_sample(folder: Path) -> Path:
    return write_report(
        sections(),
        folder,
        title="HarmBench, audited (sample with simulated models)",
        command="irtaudit audit harmbench.csv --items items.csv --factors functional_category --seed 2026",
    )


if __name__ == "__main__":
    sys.stdout.write(f"{write_sample(Path(sys.argv[1]))}\n")
