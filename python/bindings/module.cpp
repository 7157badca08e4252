// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "interop/gil.h"
#include "register.h"

NB_MODULE(_engine, module) {
  module.doc() =
      "Feedline's engine, for internal use; its names may change. The public interface is the package `feedline`.";
  // nanobind would report leaks on stderr at exit, including those from a training script's own reference cycles.
  nanobind::set_leak_warnings(false);
  feedline::python::prepare_exit();
  feedline::python::bind_inspection(module);
  feedline::python::bind_dataset(module);
  feedline::python::bind_map(module);
  feedline::python::bind_sources(module);
  feedline::python::bind_rows(module);
  feedline::python::bind_batch(module);
  feedline::python::bind_device_array(module);
  feedline::python::bind_sampling(module);
  feedline::python::bind_packing(module);
  feedline::python::bind_loader(module);
  feedline::python::bind_image(module);
  feedline::python::bind_pixel_operation(module);
  feedline::python::bind_order(module);
  feedline::python::bind_gather(module);
  feedline::python::bind_mix(module);
  feedline::python::bind_spans(module);
  feedline::python::bind_observe(module);
  feedline::python::bind_machine(module);
  feedline::python::bind_page_locks(module);
  feedline::python::bind_open_audit_hook(module);
  feedline::python::bind_foreign_storage(module);
  feedline::python::bind_foreign_images(module);
  feedline::python::bind_credentials(module);
  feedline::python::bind_node_cache(module);
  feedline::python::bind_network(module);
  feedline::python::bind_stored_source(module);
  feedline::python::bind_stored_object(module);
  feedline::python::bind_hub(module);
  feedline::python::bind_plugins(module);
  feedline::python::bind_test_conditions(module);
}
