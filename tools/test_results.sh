# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Counting test results. Sourced by environment.sh.
#
#   feedline_pytest_summary LOG...  one summary line for several pytest runs
#   feedline_count LINES WORD...    the sum of the counts before these words

# In pytest's format; empty if no test ran.
feedline_pytest_summary() { # LOG...
  local log lines
  lines=$(for log in "$@"; do
    sed -n 's/^=* *\(.*\(passed\|failed\|error\|skipped\|no tests ran\).*\) =*$/\1/p' "$log" | tail -n 1
  done)
  grep -qE '[0-9] (passed|failed|error|skipped)' <<<"$lines" || return 0
  echo "$(feedline_count "$lines" passed) passed, $(feedline_count "$lines" failed error) failed," \
    "$(feedline_count "$lines" skipped) skipped"
}

feedline_count() { # LINES WORD...
  local lines=$1 word sum=0 count
  shift
  for word in "$@"; do
    for count in $(sed -nE "s/(.*[^0-9]|^)([0-9]+) $word.*/\2/p" <<<"$lines"); do
      sum=$((sum + count))
    done
  done
  echo "$sum"
}
