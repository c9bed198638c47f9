internal import SQLiteFormat

/// The files of a store in one input: the main file, and from the magic number of a log or a journal on, that.
///
/// So an input needs no lengths, which mutations would break, and a seed is simply one file behind the other.
struct StoreBytes {
  var main: [UInt8]
  var log: [UInt8]?
  var journal: [UInt8]?

  init(_ bytes: [UInt8]) {
    let places = stride(from: 0, to: bytes.count, by: 512)
    if let place = places.first(where: { WriteAheadLog.Header(Array(bytes[$0...].prefix(32))) != nil }) {
      main = Array(bytes[..<place])
      log = Array(bytes[place...])
    } else if let place = places.first(where: { bytes[$0...].starts(with: RollbackJournal.magic) }) {
      main = Array(bytes[..<place])
      journal = Array(bytes[place...])
    } else {
      main = bytes
    }
  }

  init(main: [UInt8], log: [UInt8]? = nil, journal: [UInt8]? = nil) {
    self.main = main
    self.log = log
    self.journal = journal
  }

  /// One input of all files.
  var joined: [UInt8] {
    let padding = (512 - main.count % 512) % 512
    guard let second = log ?? journal else { return main }
    return main + [UInt8](repeating: 0, count: padding) + second
  }
}
