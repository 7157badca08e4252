#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# datasets 5.2.0 reads a folder that pyarrow 26.0.1 wrote with partition_cols=["label"] without the column "label", and
# without a warning: pyarrow stores the column's values only in folder names.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install datasets==5.2.0 pyarrow==26.0.1
export HF_HUB_OFFLINE=1 HF_HOME=$folder/cache

python - <<'PYTHON' | expect "pyarrow: label, x
datasets: x"
import datasets
import pyarrow as pa
import pyarrow.parquet as pq

table = pa.table({"x": [1, 2, 3, 4], "label": ["cat", "dog", "cat", "dog"]})
pq.write_to_dataset(table, "data", partition_cols=["label"])
print("pyarrow:", ", ".join(sorted(pq.read_table("data").column_names)))
datasets.disable_progress_bars()
print("datasets:", ", ".join(datasets.load_dataset("parquet", data_dir="data", split="train").column_names))
PYTHON
