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

// Expands braces as bash does: "{000..146}" (zeros kept, "{a..e}" and a step "..2" too), "{a,b}", several groups and
// groups inside groups; leftmost varies slowest. Text without braces is itself. kConfig: braces that do not match,
// that hold neither a range nor a list (bash would take them literally), or that make an absurd number of names.
Result<std::vector<std::string>> expand_braces(const std::string& text);

// Does the text stand for several names?
bool is_list(const std::string& text);

// "a::b" is a, then b. If there are several parts, Feedline's indexes among them are left out.
std::vector<std::string> split_list(const std::string& text);

// Every part of a "::" list, with braces and then wildcards (glob.h) expanded, unless a file has the name as it is.
// kConfig: an empty name, or a pattern that nothing matches. with_folders: see expand_glob().
Result<std::vector<std::string>> names_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what, bool with_folders = false);
// The same for files. what: "tar file". kConfig: a folder is among them.
Result<std::vector<std::string>> shards_of(const std::string& source, const storage::Storage& storage,
                                           std::string_view what);
// The first of these names, to recognise the format; the pattern itself if nothing matches, or if the storage is
// remote, since it is not listed for this.
std::string first_of_list(const std::string& source, const storage::Storage& storage);

// A source by what its one storage calls it.
struct LocatedSource {
  std::shared_ptr<const storage::Storage> storage;
  std::string source;
};
// What the user wrote, whose parts may be URLs: "file:///a.tar::file:///b.tar" is "/a.tar::/b.tar" of the local
// storage. Reads nothing. kConfig: a part that no storage reads, or parts of several storages.
using OpenUrl = std::function<Result<storage::Location>(const std::string& url)>;
Result<LocatedSource> locate(const std::string& source, const OpenUrl& open = storage::open);
// The same of a source that may be "pipe:" and a command (storage/pipe): several of them are of one storage.
Result<LocatedSource> locate_allowing_commands(const std::string& source);

}  // namespace feedline::format
