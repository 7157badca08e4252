// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "feedline/dataset.h"

namespace feedline::python {

// One method per operation: plain arguments, already brought to one form by feedline/arguments.py.
void bind_operations(nanobind::class_<Dataset>& cls);

}  // namespace feedline::python
