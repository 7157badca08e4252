#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# webdataset 1.0.2, GNU tar 1.34: if two files are hard links to the same data (deduplicating copies make such links), tar
# stores the second as a link member. webdataset skips it without a warning: the sample lacks that field.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install webdataset==1.0.2

mkdir shard
printf same >shard/0.txt
ln shard/0.txt shard/1.txt
printf 0 >shard/0.cls
printf 1 >shard/1.cls
tar --sort=name -cf shard.tar -C shard 0.cls 0.txt 1.cls 1.txt

python - <<'PYTHON' | expect "0: cls, txt
1: cls"
import os
import webdataset

for sample in webdataset.WebDataset("file:" + os.path.abspath("shard.tar"), shardshuffle=False):
    print(f"{sample['__key__']}: {', '.join(sorted(name for name in sample if not name.startswith('__')))}")
PYTHON
