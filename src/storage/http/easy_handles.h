// SPDX-License-Identifier: Apache-2.0
#pragma once

// curl's handles for requests, which are used again: each keeps the options that all requests have in common.

#include <cstddef>
#include <string>
#include <vector>

#include "storage/http/curl_library.h"

namespace feedline::storage {

// For one thread, but for the constructor.
class EasyHandles {
 public:
  // What curl calls for a line of a head, and for bytes of a body, with what a request has set for HEADERDATA and
  // WRITEDATA.
  using Receive = std::size_t (*)(char* data, std::size_t size, std::size_t count, void* request);

  EasyHandles(const CurlLibrary& curl, Receive on_header, Receive on_body);
  ~EasyHandles();
  EasyHandles(const EasyHandles&) = delete;
  EasyHandles& operator=(const EasyHandles&) = delete;

  // One that has those options, and what the read before it had besides. nullptr: libcurl has no memory.
  CURL* take();
  // Kept for others, or freed where it has options that another request would not set anew.
  void give_back(CURL* handle, bool has_usual_options);

 private:
  void clear();
  void set_lasting(CURL* handle) const;

  const CurlLibrary& curl_;
  const Receive on_header_, on_body_;
  std::vector<CURL*> kept_;
  std::string certificates_;  // where those take them from
};

}  // namespace feedline::storage
