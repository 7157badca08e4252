// SPDX-License-Identifier: Apache-2.0
#pragma once

// Registers the parts of a plugin with storage, format, decode and transform, which own copies of them from then on.
// The caller owns the library and serializes calls (loading.cpp holds its mutex).

#include <string>

#include "feedline/plugin/loading.h"
#include "feedline/plugin/plugin.h"

namespace feedline::plugin {

using Register = int (*)(const feedline_registry_v1*, feedline_message*);

const char* engine_version();  // "0.2.0"

// Calls a plugin's feedline_register_v1(), checks all of its parts, and then adds them. path: for the result. kConfig:
// the call or a check failed, and nothing was added. Requires: no concurrent call.
Result<PluginContents> register_plugin(const std::string& path, Register call, const ReservedNames& reserved);

}  // namespace feedline::plugin
