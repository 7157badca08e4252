// SPDX-License-Identifier: Apache-2.0
#pragma once

// Storage schemes of plugins. The struct is copied, and the scheme stays registered until the process ends. Called by
// the one thread that registers a plugin (plugin/loading.cpp).

#include <memory>
#include <string>

#include "feedline/foreign_storage.h"
#include "feedline/plugin/plugin.h"

namespace feedline::storage {

// Checks the name and the functions. kConfig: one is missing or invalid, or this process reads the scheme already.
Result<void> check_plugin(const feedline_storage_v1& storage);
// Requires: check_plugin() succeeded for the same scheme, and no other thread has registered it since.
void add_plugin(const feedline_storage_v1& storage);

}  // namespace feedline::storage
