#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grain 0.2.18: if an IterDataset is batched before mp_prefetch, each worker process makes batches of its own samples. So the
# batches depend on the number of workers, and drop_remainder=True drops up to one batch per worker: of 14 samples, 2 without
# workers, 6 with two workers and all 14 with five.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install grain==0.2.18

cat >batches.py <<'PYTHON'
import grain

if __name__ == "__main__":
    batched = grain.MapDataset.range(14).to_iter_dataset().batch(4, drop_remainder=True)
    for workers in (0, 2, 5):
        batches = batched.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else batched
        print(f"{workers} workers:", *(batch.tolist() for batch in batches))
PYTHON
python batches.py 2>/dev/null | expect "0 workers: [0, 1, 2, 3] [4, 5, 6, 7] [8, 9, 10, 11]
2 workers: [0, 2, 4, 6] [1, 3, 5, 7]
5 workers:"
