internal import Foundation
internal import GRDB
internal import StoreFiles
package import SystemPackage

extension PersistentStore {
  /// Seconds since 2001-01-01T00:00:00Z, by the system's clock.
  @Sendable public static func referenceDate() -> Double { Date().timeIntervalSinceReferenceDate }

  /// The path as an SQLite URI that opens the file and never creates it.
  ///
  /// Every byte that is not plain is escaped, so that any name works: with question marks, with line breaks, and with
  /// bytes that are not UTF-8.
  package static func address(of path: FilePath, isReadOnly: Bool) -> String {
    escaped(path) + (isReadOnly ? "?mode=ro" : "?mode=rw")
  }

  /// The path as an SQLite URI without parameters.
  static func escaped(_ path: FilePath) -> String {
    var address = path.isAbsolute ? "file://" : "file:"
    for byte in path.rawBytes {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        address.unicodeScalars.append(Unicode.Scalar(byte))
      default: address += "%" + CollectionOfOne(byte).hexadecimal.uppercased()
      }
    }
    return address
  }

  /// The settings of a connection.
  static func configuration(_ options: Options) -> Configuration {
    var configuration = Configuration()
    configuration.readonly = options.isReadOnly
    configuration.foreignKeysEnabled = false
    configuration.label = "Lazaret.PersistentStore"
    let (seconds, attoseconds) = options.busyTimeout.components
    configuration.busyMode = .timeout(max(0, Double(seconds) + Double(attoseconds) * 1e-18))
    configuration.prepareDatabase { database in
      for function in CoreDataFunctions.all(now: options.now) { database.add(function: function) }
    }
    return configuration
  }
}
