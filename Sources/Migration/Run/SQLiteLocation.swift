internal import StoreFiles
internal import SystemPackage

/// The address of a database file as SQLite's URI, whatever bytes its name holds.
struct SQLiteLocation {
  /// How the file is opened.
  enum Mode: String {
    /// Read and write, made where it is missing.
    case create = "mode=rwc"

    /// Read and write a file that is there.
    case write = "mode=rw"

    /// Read a file that nobody changes meanwhile: no locks, no log, nothing written beside it.
    case immutable = "mode=ro&immutable=1"
  }

  /// The URI.
  let address: String

  init(_ path: FilePath, _ mode: Mode) {
    var address = path.isAbsolute ? "file://" : "file:"
    for (index, component) in path.components.enumerated() {
      if index > 0 || path.isAbsolute { address += "/" }
      for byte in component.platformBytes { address += Self.escaped(byte) }
    }
    self.address = address + "?" + mode.rawValue
  }

  private static func escaped(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      return String(Unicode.Scalar(byte))
    default:
      let digits = String(byte, radix: 16, uppercase: true)
      return digits.utf8.count == 1 ? "%0" + digits : "%" + digits
    }
  }
}
