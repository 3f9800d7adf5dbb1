"""How panel_oracles.json was made: pingouin 0.7.0, krippendorff 0.9.0 (GPL; irtaudit imports neither).

python panel_oracles_make.py > panel_oracles.json
"""

import json
import sys

import krippendorff
import numpy as np
import pandas as pd
import pingouin

ROWS = [  # 12 units, four columns, with ties; invented
    [0.04, 0.32, 0.89, 30.4],
    [0.40, 0.77, 0.81, 33.3],
    [0.11, 0.35, 0.78, 46.7],
    [0.97, 0.87, 0.77, 77.2],
    [0.94, 0.88, 0.76, 42.0],
    [0.64, 0.60, 0.75, 46.9],
    [0.92, 0.71, 0.62, 68.3],
    [0.86, 0.76, 0.61, 59.1],
    [0.62, 0.92, 0.60, 49.1],
    [0.61, 0.87, 0.60, 66.3],
    [0.76, 0.87, 0.51, 65.0],
    [0.61, 0.31, 0.47, 46.7],
]
_ = None
CODES = [  # four coders, twelve units, missing codes: the example of Krippendorff (2011)
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


def main() -> None:
    frame = pd.DataFrame(ROWS, columns=["x", "y", "z", "w"])
    codes = np.array([[np.nan if c is None else c for c in row] for row in CODES])
    partial = {}
    for covariates in (["w"], ["w", "z"]):
        found = pingouin.partial_corr(frame, "x", "y", covar=covariates, method="spearman")
        partial[" ".join(covariates)] = [float(found["r"].iloc[0]), float(found["p_val"].iloc[0])]
    alphas = {
        level: krippendorff.alpha(reliability_data=codes, level_of_measurement=level)
        for level in ("nominal", "ordinal", "interval")
    }
    json.dump(
        {
            "versions": {"pingouin": pingouin.__version__, "krippendorff": "0.9.0", "numpy": np.__version__},
            "rows": ROWS,
            "codes": CODES,
            "partial_spearman_x_y_given": partial,
            "krippendorff_alpha": alphas,
        },
        sys.stdout,
        indent=1,
    )


if __name__ == "__main__":
    main()
