// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "feedline/dataset.h"

namespace feedline::python {

// Returns the options in a dict of arguments, named as in OpenOptions. Raises feedline.ConfigError for a wrong one.
OpenOptions open_options_of(const nanobind::dict& arguments);

}  // namespace feedline::python
