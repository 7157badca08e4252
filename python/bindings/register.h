// SPDX-License-Identifier: Apache-2.0
#pragma once

// One function per .cpp, of that name; module.cpp calls them in this order.

#include <nanobind/nanobind.h>

namespace feedline::python {

void bind_inspection(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);  // with its operations (operations.cpp)
void bind_map(nanobind::module_& module);      // user functions; after bind_dataset()
void bind_sources(nanobind::module_& module);  // arrays, tokens, given files
void bind_rows(nanobind::module_& module);     // rows in memory; after bind_dataset()
void bind_batch(nanobind::module_& module);
void bind_device_array(nanobind::module_& module);  // arrays of batches on any device
void bind_sampling(nanobind::module_& module);      // before bind_loader()
void bind_packing(nanobind::module_& module);       // before bind_loader()
void bind_loader(nanobind::module_& module);
void bind_image(nanobind::module_& module);
void bind_pixel_operation(nanobind::module_& module);  // for tests and benchmarks
void bind_order(nanobind::module_& module);
void bind_gather(nanobind::module_& module);
void bind_mix(nanobind::module_& module);
void bind_spans(nanobind::module_& module);
void bind_observe(nanobind::module_& module);     // data sources of `feedline diagnose`
void bind_machine(nanobind::module_& module);     // the resources that this machine allows a process
void bind_page_locks(nanobind::module_& module);  // memory that a GPU reads directly
void bind_open_audit_hook(nanobind::module_& module);
void bind_foreign_storage(nanobind::module_& module);  // storages and images read by a Python library
void bind_foreign_images(nanobind::module_& module);   // images decoded by a Python library
void bind_credentials(nanobind::module_& module);      // keys of s3:// and gs:// from a Python library
void bind_node_cache(nanobind::module_& module);
void bind_network(nanobind::module_& module);        // network statistics
void bind_stored_source(nanobind::module_& module);  // objects copied and verified as bytes
void bind_stored_object(nanobind::module_& module);  // objects written to a URL
void bind_hub(nanobind::module_& module);            // datasets on the Hugging Face Hub
void bind_plugins(nanobind::module_& module);        // shared libraries that extend the engine
void bind_test_conditions(nanobind::module_& module);

}  // namespace feedline::python
