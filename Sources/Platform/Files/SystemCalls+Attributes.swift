import SystemPackage

#if os(Linux)
  import CLinux
#endif
#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension SystemCalls {
  /// Linux's limit for the list of names and for a value (xattr(7)); larger ones are skipped.
  private static let attributeLimit = 64 << 10

  #if canImport(Darwin)
    /// On Darwin the access control list is no attribute; ``setAttributes(_:of:)`` sets none.
    static func attributes(of path: FilePath) throws(Errno) -> [String: [UInt8]] { [:] }

    static func setAttributes(_ attributes: [String: [UInt8]], of path: FilePath) throws(Errno) {}
  #else
    /// Reads the extended attributes; empty on a file system without them.
    ///
    /// They include the access control list (`system.posix_acl_access`, acl(5)).
    static func attributes(of path: FilePath) throws(Errno) -> [String: [UInt8]] {
      var attributes: [String: [UInt8]] = [:]
      for name in try attributeNames(of: path) {
        if let value = value(of: name, at: path) { attributes[name] = value }
      }
      return attributes
    }

    static func setAttributes(_ attributes: [String: [UInt8]], of path: FilePath) throws(Errno) {
      for name in try attributeNames(of: path) where attributes[name] == nil && isCopied(name) {
        _ = unsafe path.withPlatformString { file in unsafe removexattr(file, name) }
      }
      for (name, wanted) in attributes.sorted(by: { $0.key < $1.key }) where isCopied(name) {
        if value(of: name, at: path) == wanted { continue }
        let result = unsafe path.withPlatformString { file in
          unsafe wanted.withUnsafeBytes { bytes in unsafe setxattr(file, name, bytes.baseAddress, bytes.count, 0) }
        }
        if result == 0 { continue }
        switch Errno(rawValue: errno) {
        // Unsupported, or the superuser's own attributes: the permissions apply regardless.
        case .notSupported, .notPermitted, .permissionDenied, .invalidArgument, .argListTooLong: continue
        case let error: throw error
        }
      }
    }

    /// Whether an attribute concerns access or belongs to the app, not to a security module.
    private static func isCopied(_ name: String) -> Bool {
      name == "system.posix_acl_access" || name.hasPrefix("user.") || name == "security.selinux"
    }

    private static func attributeNames(of path: FilePath) throws(Errno) -> [String] {
      var buffer = [CChar](repeating: 0, count: attributeLimit)
      let count = unsafe path.withPlatformString { file in
        unsafe buffer.withUnsafeMutableBufferPointer { unsafe listxattr(file, $0.baseAddress, $0.count) }
      }
      guard count >= 0 else {
        switch Errno(rawValue: errno) {
        case .notSupported, .argListTooLong, .outOfRange, .noFunction: return []
        case let error: throw error
        }
      }
      return buffer.prefix(count).split(separator: 0).map { name in
        String(decoding: name.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      }
    }

    private static func value(of name: String, at path: FilePath) -> [UInt8]? {
      var buffer = [UInt8](repeating: 0, count: attributeLimit)
      let count = unsafe path.withPlatformString { file in
        unsafe buffer.withUnsafeMutableBytes { unsafe getxattr(file, name, $0.baseAddress, $0.count) }
      }
      return count >= 0 ? Array(buffer.prefix(count)) : nil
    }
  #endif
}
