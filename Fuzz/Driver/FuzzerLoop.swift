import FuzzTargets
import Platform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// libFuzzer, which calls a target with one input after another; the only unsafe code of the fuzzer.
enum FuzzerLoop {
  fileprivate static let target = Mutex<FuzzTarget?>(nil)

  /// Fuzzes a target with the options on the command line until they say that it is enough, and returns an exit status.
  static func run(_ target: FuzzTarget) -> CInt {
    self.target.withLock { $0 = target }
    var count = CommandLine.argc
    var arguments = unsafe CommandLine.unsafeArgv
    return unsafe runFuzzer(&count, &arguments, fuzz)
  }
}

/// libFuzzer's own loop (`LLVMFuzzerRunDriver` in LLVM's "libFuzzer" manual, "Using libFuzzer as a library").
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private func fuzz(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  do throws(FuzzFailure) {
    try FuzzerLoop.target.withLock { $0 }?.run(input)
  } catch {
    // libFuzzer keeps the input of a process that aborts; what standard output still holds would be lost.
    _ = try? FileDescriptor.standardError.writeAll("Contradiction: \(error)\n".utf8)
    abort()
  }
  return 0
}

/// A variable of the environment.
func environment(_ name: String) -> String? {
  guard let value = unsafe getenv(name) else { return nil }
  return unsafe String(cString: value)
}
