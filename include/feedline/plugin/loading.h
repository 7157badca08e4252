// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads plugins (plugin.h).

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// The names that a plugin has registered, each list in the order of registration.
struct PluginContents {
  std::string path;                   // absolute, without symbolic links
  std::vector<std::string> storages;  // URL schemes
  std::vector<std::string> formats;
  std::vector<std::string> codecs;
  std::vector<std::string> operations;
};

// Names that a plugin must not register, because the caller uses them.
struct ReservedNames {
  std::vector<std::string> formats;
  std::vector<std::string> operations;
};

// Loads a shared library, which stays loaded until the process ends, and registers its contents. If the same file is
// loaded already, only returns its contents. Thread-safe. kConfig: the file cannot be loaded, is not a plugin, requires
// another version of the interface, fails to register, or registers a name that exists or is reserved; nothing is
// registered then.
Result<PluginContents> load_plugin(const std::string& path, const ReservedNames& reserved = {});
// Returns the plugins of this process in the order of loading.
std::vector<PluginContents> loaded_plugins();
// Returns whether Feedline or a plugin reads files with this extension (lower case, without a dot), which another
// format must not have.
bool reads_extension(std::string_view extension);

}  // namespace feedline
