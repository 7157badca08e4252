// SPDX-License-Identifier: Apache-2.0
#include "format/numpy_files/array_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "format/numpy_files/zip_directory.h"
#include "memory/npy_header.h"
#include "memory/record.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kArrayEnd = ".npy";

// A range of bytes and the owner of their memory.
struct Held {
  Bytes bytes;
  std::shared_ptr<void> owner;
};

Result<Held> room_for(std::uint64_t bytes, std::span<std::byte>& room) {
  auto buffer = std::make_shared<memory::ByteBuffer>();
  FEEDLINE_TRY(room, buffer->make_room(bytes, bytes));
  return Held{room, buffer};
}

// Maps or reads the whole file. If a .npy file is mapped, only its header is read from disk.
Result<Held> hold(const storage::Storage& storage, const std::string& path) {
  FEEDLINE_TRY(std::shared_ptr<storage::Reader> reader, storage.open(path, storage::Access::kMap));
  if (const Bytes all = reader->mapping(); !all.empty()) {
    FEEDLINE_CHECK_OK(reader->view(0, std::min(all.size(), memory::kMostNpyHeader)));
    if (begins_as_npy(all)) return Held{all, reader};
  }
  FEEDLINE_TRY(const auto stat, reader->version());
  if (stat.bytes > 0) {
    FEEDLINE_TRY(const auto view, reader->view(0, stat.bytes));
    if (view) return Held{*view, reader};
  }
  std::span<std::byte> room;
  FEEDLINE_TRY(Held held, room_for(stat.bytes, room));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, room));
  if (got < room.size()) return storage_error("'" + path + "' became shorter while it was read", 0);
  return held;
}

// Reverses the byte order of elements of `size` bytes.
void swap_bytes(std::span<std::byte> data, std::size_t size) {
  for (std::size_t at = 0; at + size <= data.size(); at += size) std::ranges::reverse(data.subspan(at, size));
}

// Converts from Fortran order, in which the first dimension varies fastest, to C order.
void to_c_order(Bytes in, const ArraySpec& spec, std::byte* out) {
  const std::size_t dims = spec.shape.dims(), size = size_of(spec.dtype);
  std::vector<std::size_t> strides(dims), location(dims);
  std::size_t stride = size;
  for (std::size_t i = 0; i < dims; ++i) {
    strides[i] = stride;
    stride *= static_cast<std::size_t>(spec.shape[i]);
  }
  for (std::size_t done = 0, from = 0; done < in.size(); done += size) {
    std::memcpy(out + done, in.data() + from, size);
    for (std::size_t i = dims; i-- > 0;) {  // Advances to the next element, last dimension first.
      from += strides[i];
      if (++location[i] < static_cast<std::size_t>(spec.shape[i])) break;
      from -= strides[i] * std::exchange(location[i], 0);
    }
  }
}

// Returns an array that refers to the bytes of `file`.
Result<NamedArray> array_of(Held file, std::string name) {
  auto header = memory::read_npy_header(file.bytes.first(std::min(file.bytes.size(), memory::kMostNpyHeader)));
  if (!header) {
    header.error().where.stage = "format";
    return std::unexpected(std::move(header).error());
  }
  const ArraySpec& spec = header->spec;
  const Bytes stored = file.bytes.subspan(header->bytes);
  const std::string shown = name.empty() ? "npy: " : "npy: '" + name + "' is ";
  if (stored.size() < header->data_bytes())
    return data_error(shown + "truncated: " + std::to_string(stored.size()) + " of " +
                          std::to_string(header->data_bytes()) + " bytes of " + std::string(name_of(spec.dtype)) +
                          spec.shape.to_string(),
                      "format");
  if (spec.shape.dims() == 0)
    return config_error((name.empty() ? std::string("the array") : "the array '" + name + "'") +
                        " is a single number, which has no rows");
  Held data{stored.first(header->data_bytes()), std::move(file.owner)};
  if (header->is_fortran || header->is_swapped) {
    std::span<std::byte> room;
    FEEDLINE_TRY(Held copy, room_for(data.bytes.size(), room));
    if (header->is_fortran)
      to_c_order(data.bytes, spec, room.data());
    else
      std::ranges::copy(data.bytes, room.begin());
    if (header->is_swapped) swap_bytes(room, size_of(spec.dtype));
    data = std::move(copy);
  }
  NamedArray array;
  array.name = std::move(name);
  array.data = data.bytes.data();
  array.rows = static_cast<std::uint64_t>(spec.shape[0]);
  array.row.dtype = spec.dtype;
  for (std::size_t i = spec.shape.dims(); i-- > 1;) array.row.shape = array.row.shape.with_front(spec.shape[i]);
  array.stride = static_cast<std::ptrdiff_t>(array.row.bytes());
  array.owner = std::move(data.owner);
  return array;
}

std::string array_name(const ZipMember& member) {
  std::string name = member.name;
  if (name.ends_with(kArrayEnd)) name.resize(name.size() - kArrayEnd.size());
  return name;
}

Result<memory::NpyHeader> header_of(const ZipMember& member) {
  if (!member.is_deflated)
    return memory::read_npy_header(member.stored.first(std::min(member.stored.size(), memory::kMostNpyHeader)));
  std::vector<std::byte> front(std::min<std::uint64_t>(member.plain_bytes, memory::kMostNpyHeader));
  FEEDLINE_TRY(const std::size_t bytes, inflate_front(member, front));
  return memory::read_npy_header(std::span(front).first(bytes));
}

Result<NamedArray> array_of_member(const ZipMember& member, const std::shared_ptr<void>& archive) {
  Held plain{member.stored, archive};
  if (member.is_deflated) {
    std::span<std::byte> room;
    FEEDLINE_TRY(plain, room_for(member.plain_bytes, room));
    FEEDLINE_CHECK_OK(inflate_member(member, room));
  }
  FEEDLINE_CHECK_OK(check_sum(member, plain.bytes));
  return array_of(std::move(plain), array_name(member));
}

Result<ArrayFile> arrays_in(Held file, const std::string& path, const std::vector<std::string>& wanted) {
  ArrayFile found{path, file.bytes.size(), {}, {}};
  if (begins_as_npy(file.bytes)) {
    FEEDLINE_TRY(found.arrays.emplace_back(), array_of(std::move(file), ""));
    return found;
  }
  if (!begins_as_zip(file.bytes))
    return data_error(file.bytes.empty() ? "npy: an empty file" : "neither a .npy nor a .npz file", "format");
  FEEDLINE_TRY(const auto members, zip_members(file.bytes));
  std::string names;
  for (const ZipMember& member : members) names += (names.empty() ? "" : ", ") + array_name(member);
  for (const std::string& name : wanted)
    if (std::ranges::find(members, name, &array_name) == members.end())
      return config_error("fields: there is no array '" + name + "'; the file has " + names);
  for (const ZipMember& member : members) {
    if (!wanted.empty() && std::ranges::find(wanted, array_name(member)) == wanted.end()) {
      found.others.push_back({array_name(member), header_of(member)});
      continue;
    }
    FEEDLINE_TRY(found.arrays.emplace_back(), array_of_member(member, file.owner));
  }
  if (found.arrays.empty()) return config_error("the .npz file contains no arrays");
  return found;
}

}  // namespace

bool begins_as_npy(Bytes front) { return memory::is_npy(front); }

bool begins_as_zip(Bytes front) {
  const std::string_view text(reinterpret_cast<const char*>(front.data()), front.size());
  return text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06");  // an empty archive
}

Result<ArrayFile> open_array_file(const storage::Storage& storage, const std::string& path,
                                  const std::vector<std::string>& wanted) {
  auto held = hold(storage, path);
  auto found = held ? arrays_in(std::move(*held), path, wanted) : std::unexpected(held.error());
  if (!found && found.error().where.shard.empty()) found.error().where.shard = path;
  return found;
}

}  // namespace feedline::format
