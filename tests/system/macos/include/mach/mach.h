/* SPDX-License-Identifier: GPL-3.0-or-later */
/* task_info and host_statistics64, with the members that are used, where Apple's structures have them. */
#ifndef STUB_MACH_MACH_H
#define STUB_MACH_MACH_H
#include <stdint.h>
typedef int kern_return_t;
typedef unsigned int natural_t;
typedef int integer_t;
typedef natural_t mach_port_t;
typedef natural_t mach_msg_type_number_t;
typedef uint64_t mach_vm_size_t;
typedef uint64_t mach_vm_address_t;
typedef uintptr_t vm_size_t;
typedef natural_t task_flavor_t;
typedef integer_t *task_info_t;
typedef int host_flavor_t;
typedef integer_t *host_info64_t;
typedef mach_port_t host_t;
typedef mach_port_t task_name_t;
#define KERN_SUCCESS 0
extern mach_port_t mach_task_self_;
#define mach_task_self() mach_task_self_
host_t mach_host_self(void);
#define TASK_VM_INFO 22
struct task_vm_info {
    mach_vm_size_t virtual_size;
    integer_t region_count;
    integer_t page_size;
    mach_vm_size_t resident_size;
    mach_vm_size_t resident_size_peak;
    mach_vm_size_t device;
    mach_vm_size_t device_peak;
    mach_vm_size_t internal;
    mach_vm_size_t internal_peak;
    mach_vm_size_t external;
    mach_vm_size_t external_peak;
    mach_vm_size_t reusable;
    mach_vm_size_t reusable_peak;
    mach_vm_size_t purgeable_volatile_pmap;
    mach_vm_size_t purgeable_volatile_resident;
    mach_vm_size_t purgeable_volatile_virtual;
    mach_vm_size_t compressed;
    mach_vm_size_t compressed_peak;
    mach_vm_size_t compressed_lifetime;
    mach_vm_size_t phys_footprint;
    mach_vm_address_t min_address;
    mach_vm_address_t max_address;
    int64_t ledger_phys_footprint_peak;
};
typedef struct task_vm_info task_vm_info_data_t;
#define TASK_VM_INFO_COUNT ((mach_msg_type_number_t)(sizeof(task_vm_info_data_t) / sizeof(natural_t)))
kern_return_t task_info(task_name_t task, task_flavor_t flavor, task_info_t out,
                        mach_msg_type_number_t *count);
#define HOST_VM_INFO64 4
struct vm_statistics64 {
    natural_t free_count;
    natural_t active_count;
    natural_t inactive_count;
    natural_t wire_count;
    uint64_t zero_fill_count;
    uint64_t reactivations;
    uint64_t pageins;
    uint64_t pageouts;
    uint64_t faults;
    uint64_t cow_faults;
    uint64_t lookups;
    uint64_t hits;
    uint64_t purges;
    natural_t purgeable_count;
    natural_t speculative_count;
    uint64_t decompressions;
    uint64_t compressions;
    uint64_t swapins;
    uint64_t swapouts;
    natural_t compressor_page_count;
    natural_t throttled_count;
    natural_t external_page_count;
    natural_t internal_page_count;
    uint64_t total_uncompressed_pages_in_compressor;
};
typedef struct vm_statistics64 vm_statistics64_data_t;
#define HOST_VM_INFO64_COUNT ((mach_msg_type_number_t)(sizeof(vm_statistics64_data_t) / sizeof(integer_t)))
kern_return_t host_statistics64(host_t host, host_flavor_t flavor, host_info64_t out,
                                mach_msg_type_number_t *count);
#endif
