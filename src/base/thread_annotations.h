#pragma once

#include <mutex>

// Locking rules that clang checks (-Wthread-safety); other compilers read past them.
#if defined(__clang__)
#define HEADRACE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HEADRACE_THREAD_ATTRIBUTE(x)
#endif

#define GUARDED_BY(mutex) HEADRACE_THREAD_ATTRIBUTE(guarded_by(mutex))
#define REQUIRES(mutex) HEADRACE_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace headrace {

/// std::mutex that clang's analysis knows.
class HEADRACE_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() HEADRACE_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() HEADRACE_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class HEADRACE_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEADRACE_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex.lock();
  }
  ~MutexLock() HEADRACE_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace headrace
