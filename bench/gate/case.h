// SPDX-License-Identifier: Apache-2.0
#pragma once

// A piece of the engine's work on an input that is made in code: the same instructions on every run.

#include <functional>
#include <string_view>
#include <vector>

namespace feedline::gate {

struct Case {
  std::string_view name;
  // Makes the input, and gives what is counted: it runs once before, so that buffers have grown, and once for the
  // count.
  std::function<std::function<void()>()> prepare;
};

std::vector<Case> image_cases();
std::vector<Case> store_cases();
std::vector<Case> order_cases();

// Ends the program: the count would be of something else.
void require(bool holds, const char* what);

}  // namespace feedline::gate
