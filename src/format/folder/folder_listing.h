// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists the samples in a folder that contains class folders, in exactly the same order as torchvision's ImageFolder.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/folder/listed_folders.h"
#include "format/shards/finding.h"
#include "storage/storage.h"

namespace feedline::format {

// An object's size and version tag in a listing. The tag is 0 if unknown (storage/reader.h).
struct ListedObject {
  std::uint64_t bytes;
  std::uint64_t tag;
};

// The kind of file that each sample of a folder consists of.
enum class SampleFile : std::uint8_t { kImage, kAudio, kVideo };

// The samples in a folder. Uses only a few dozen bytes per sample, because datasets with millions of files are common.
struct FolderListing {
  SampleFile file = SampleFile::kImage;
  std::vector<std::string> classes;                 // sorted; the index is the label
  std::vector<std::uint64_t> class_ends;            // number of samples in each class and those before it
  std::string paths;                                // paths of all samples relative to the root, concatenated
  std::vector<std::uint64_t> path_ends;             // end of each path in `paths`
  std::vector<ListedObject> objects;                // one per sample; empty if the listing has no object data
  std::vector<ListedFolder> folders;                // all folders that were listed
  std::map<std::string, std::uint64_t> extensions;  // files below class folders by lower-case extension, including
                                                    // files that are not samples
  // Files next to the class folders, which ImageFolder ignores, by their extensions as written (".JPG").
  std::map<std::string, std::uint64_t> stray_extensions;
  std::vector<std::string> stray_tars;
  // The path of a file that describes the images; the file is in the root or in one of the first class folders. Set
  // only for flat storage.
  std::string metadata;
  Findings findings;  // class_without_images, unknown_extension, stray_file

  std::uint64_t samples() const { return path_ends.size(); }
  std::string_view path(std::uint64_t sample) const;
};

// Lists folders without opening files. Lists several classes in parallel if there are enough CPUs or the storage is
// remote. Fails with kStorage if a folder cannot be listed, and with kConfig if folders are nested too deeply, for
// example because of a link to a parent folder.
Result<FolderListing> list_folder(const storage::Storage& storage, const std::string& root,
                                  SampleFile file = SampleFile::kImage);

// Names of files that describe the images next to them.
inline constexpr std::array<std::string_view, 3> kMetadataNames{"metadata.csv", "metadata.jsonl", "metadata.parquet"};
// The number of class folders to search for metadata, which is limited because datasets may have thousands of classes.
inline constexpr std::ptrdiff_t kFirstClasses = 8;

}  // namespace feedline::format
