#pragma once

#include <cstdint>
#include <string>

namespace headrace::test {

/// Bytes that the kernel says this process, all its threads, took from drives; 0 where it does not count.
uint64_t kernel_read_bytes();

/// Pages of 4 KiB of a file that the page cache holds. Ends the test when the system does not tell.
size_t cached_pages(const std::string& path);

/// Writes a file out and drops its pages, so that the next read comes from the drive.
void evict(const std::string& path);

}  // namespace headrace::test
