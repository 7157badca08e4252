// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine's libcurl, opened at run time: where there is none, only what needs it fails.

#include <curl/curl.h>

#include <string>

#include "feedline/error.h"

namespace feedline::storage {

// The calls that are used, under their own names without "curl_".
struct CurlLibrary {
  decltype(&::curl_global_init_mem) global_init_mem = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...) = nullptr;
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...) = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  CURLMcode (*multi_setopt)(CURLM*, CURLMoption, ...) = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  CURLMcode (*multi_socket_action)(CURLM*, curl_socket_t, int, int*) = nullptr;
  CURLMcode (*multi_assign)(CURLM*, curl_socket_t, void*) = nullptr;
  decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;  // not called: it came with the oldest version that is tried
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
};

// file: a library to take and no other; empty: the first that the system knows. kStorage, with what to install: there
// is none that will do. It stays open until the process ends.
Result<CurlLibrary> open_curl(const std::string& file);
// The process's: of FEEDLINE_LIBCURL, or the system's; opened at the first call.
const Result<CurlLibrary>& curl_library();

}  // namespace feedline::storage
