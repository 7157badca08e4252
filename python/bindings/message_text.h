// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace feedline::python {

// What the engine says to people, as str. It quotes what damaged files hold and names of files, which need not be text:
// bytes that are not UTF-8 become "\xff".
nanobind::object message_text(const std::string& text);

}  // namespace feedline::python
