// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace feedline::python {

// Converts an engine message to str. Messages quote contents of damaged files and file names, which need not be text:
// bytes that are not UTF-8 become "\xff".
nanobind::object message_text(const std::string& text);

}  // namespace feedline::python
