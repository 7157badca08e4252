// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pool of curl handles that retain the options shared by all requests.

#include <cstddef>
#include <string>
#include <vector>

#include "storage/http/curl_library.h"

namespace feedline::storage {

// Used by one thread, except for the constructor.
class EasyHandles {
 public:
  // curl's callbacks for header lines and body data; they receive a request's HEADERDATA and WRITEDATA.
  using Receive = std::size_t (*)(char* data, std::size_t size, std::size_t count, void* request);

  EasyHandles(const CurlLibrary& curl, Receive on_header, Receive on_body);
  ~EasyHandles();
  EasyHandles(const EasyHandles&) = delete;
  EasyHandles& operator=(const EasyHandles&) = delete;

  // Returns a handle with the shared options, and options that the handle's previous read has set; nullptr if out of
  // memory.
  CURL* take();
  // Returns a handle to the pool, or frees it if it has options that the next request would not overwrite.
  void give_back(CURL* handle, bool has_usual_options);

 private:
  void clear();
  void set_lasting(CURL* handle) const;

  const CurlLibrary& curl_;
  const Receive on_header_, on_body_;
  std::vector<CURL*> idle_;
  std::string certificates_;  // where those take them from
};

}  // namespace feedline::storage
