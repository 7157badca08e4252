// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "feedline/dataset.h"

namespace feedline::python {

// Operations by name, with arguments in the forms that feedline/data/ops/operation_arguments.py makes.
void bind_operations(nanobind::module_& module, nanobind::class_<Dataset>& cls);

}  // namespace feedline::python
