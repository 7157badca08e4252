// SPDX-License-Identifier: Apache-2.0
#pragma once

// The system's libcurl, opened at run time: without it, only remote reads fail.

#include <curl/curl.h>

#include <string>

#include "feedline/error.h"

namespace feedline::storage {

// The functions that Feedline uses, with libcurl's names without the prefix "curl_".
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
  decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;  // not called: requires the minimum supported version
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
};

// file: the library to load, or empty for the first one that the system finds. kStorage: there is no suitable library;
// the message names the package to install. The library stays loaded until the process ends.
Result<CurlLibrary> open_curl(const std::string& file);
// Returns the library of the process, from FEEDLINE_LIBCURL or the system; the first call loads it.
const Result<CurlLibrary>& curl_library();

}  // namespace feedline::storage
