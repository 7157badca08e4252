// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/registry.h"

namespace feedline::format {

// Expands braces like bash: ranges "{000..146}" (zero-padded), "{a..e}" and "{0..10..2}", lists "{a,b}", and several or
// nested groups, of which the leftmost varies slowest. Text without braces is returned unchanged. Fails with kConfig if
// braces are unbalanced, do not contain a range or a list (bash would leave such braces unchanged), or expand to too
// many names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

// Returns whether the text specifies several names.
bool is_list(const std::string& text);

// Splits "a::b" into "a" and "b". If there are several parts, skips Feedline's indexes among them.
std::vector<std::string> split_list(const std::string& text);

// Returns the names in a "::" list, with braces and then wildcards (glob.h) expanded. Names of existing files are not
// expanded. See expand_glob() for `with_folders`. Fails with kConfig if a name is empty or a pattern has no matches.
Result<std::vector<std::string>> names_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what, bool with_folders = false);
// Like names_of_list(), but fails with kConfig if a name is a folder. `what` is a noun for messages, such as "tar
// file".
Result<std::vector<std::string>> shards_of(const std::string& source, const storage::Storage& storage,
                                           std::string_view what);
// Returns the first name in a list, for detecting the format. Returns the pattern itself if nothing matches, or if the
// storage is remote, because remote storage is not listed for detection.
std::string first_of_list(const std::string& source, const storage::Storage& storage);

// A storage backend, and the name of a source in this backend.
struct LocatedSource {
  std::shared_ptr<const storage::Storage> storage;
  std::string source;
};
// Resolves a source from the user, whose parts may be URLs: "file:///a.tar::file:///b.tar" is "/a.tar::/b.tar" in local
// storage. Does not read anything. Fails with kConfig if no storage backend supports a part, or parts are in different
// backends.
using OpenUrl = std::function<Result<storage::Location>(const std::string& url)>;
Result<LocatedSource> locate(const std::string& source, const OpenUrl& open = storage::open);
// Like locate(), but the source may also be "pipe:" and a command (storage/pipe). Several commands share one storage.
Result<LocatedSource> locate_allowing_commands(const std::string& source);

}  // namespace feedline::format
