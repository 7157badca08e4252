// SPDX-License-Identifier: Apache-2.0
#pragma once

// A task of the engine with generated input, which takes the same instructions in every run.

#include <functional>
#include <string_view>
#include <vector>

namespace feedline::gate {

struct Case {
  std::string_view name;
  // Creates the input, and returns the function to count. It runs once to allocate buffers, and once to be counted.
  std::function<std::function<void()>()> prepare;
};

std::vector<Case> image_cases();
std::vector<Case> store_cases();
std::vector<Case> order_cases();

// Ends the program if `holds` is false, as the count would be meaningless.
void require(bool holds, const char* what);

}  // namespace feedline::gate
