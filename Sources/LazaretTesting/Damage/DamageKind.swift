/// A kind of damage to a store's copy, as written on the command line: `zero:5`, `roots`.
package struct DamageKind: Sendable, Hashable, CustomStringConvertible {
  package enum Name: String, Sendable, Hashable, CaseIterable {
    case none
    case zero
    case random = "rand"
    case bitFlips = "bitflip"
    case truncated = "trunc"
    case header
    case firstPage = "page1"
    case roots
    case interior
    case swapped = "swap"
    case torn
    case sector
    case tornFirstPage = "torn1"
    case freelist
    case stale
    case cellPointers = "cell-pointers"
    case pageHeaders = "page-headers"
    case declaration
    case field
    case inserted = "insert"
    case removed = "remove"
    case pointerMaps = "pointer-maps"
    case overflow
    case pageCount = "page-count"
    case pageSize = "page-size"
    case encoding
    case text
    case emptied = "empty"
    case prefix
    case embedded = "embed"
    case logMissing = "wal-missing"
    case logFrame = "wal-badsum"
    case logHeader = "wal-header"
    case logTail = "wal-tail"
    case logForeign = "wal-foreign"
    case logShape = "wal-shape"
    case logPartial = "wal-partial"
    case journalMissing = "journal-missing"
    case journalHeader = "journal-header"
    case journalShape = "journal-shape"
    case drift
  }

  enum Argument: Sendable, Hashable {
    case none

    case number(Double)

    case word(String)
  }

  package let name: Name

  let argument: Argument

  /// - Throws: `unknown-damage` for an unknown name or invalid argument.
  package init(_ text: String) throws(PersistentStoreError) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let name = Name(rawValue: parts.first ?? "") else {
      throw Self.unknown(
        text, "there is no such kind; there are \(Name.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    self.name = name
    argument = try Self.argument(parts.count > 1 ? parts[1] : nil, of: name, text)
  }

  private static func argument(
    _ given: String?, of name: Name, _ text: String
  ) throws(PersistentStoreError) -> Argument {
    switch name.form {
    case .nothing:
      guard given == nil else { throw Self.unknown(text, "it takes nothing after the name") }
      return .none
    case .words(let words):
      let word = given ?? words.first ?? ""
      guard words.contains(word) else {
        throw Self.unknown(text, "behind the colon stands one of \(words.joined(separator: ", "))")
      }
      return .word(word)
    case .number(let usual, let range, let unit):
      guard let given else { return .number(usual) }
      guard let number = Double(given), range.contains(number) else {
        throw Self.unknown(text, "behind the colon stands a number of \(unit)")
      }
      return .number(number)
    }
  }

  package var description: String {
    switch argument {
    case .none: name.rawValue
    case .number(let number): "\(name.rawValue):\(number == number.rounded() ? "\(Int(number))" : "\(number)")"
    case .word(let word): "\(name.rawValue):\(word)"
    }
  }

  var number: Double { if case .number(let number) = argument { number } else { 0 } }
  var word: String { if case .word(let word) = argument { word } else { "" } }
}

extension DamageKind.Name {
  enum Form {
    case nothing
    case words([String])
    case number(usual: Double, ClosedRange<Double>, unit: String)
  }

  var form: Form {
    switch self {
    case .zero, .random, .swapped, .torn, .stale, .cellPointers, .pageHeaders, .truncated:
      .number(usual: 5, 0.001...100, unit: "percent, up to 100")
    case .bitFlips: .number(usual: 8, 0.001...65536, unit: "flips in each MiB, up to 65536")
    case .prefix, .embedded: .number(usual: 10000, 1...1e9, unit: "bytes, up to 1000000000")
    case .logPartial: .number(usual: 50, 0.001...100, unit: "percent, up to 100")
    case .inserted, .removed: .number(usual: 1, 1...1e6, unit: "bytes, up to 1000000")
    case .sector: .words(["rand", "swap", "text", "zip", "jpeg"])
    case .declaration: .words(["bit", "word"])
    case .field: .words(["reserved", "largest-root", "incremental", "freelist", "format", "cell-count"])
    case .logShape: .words(["headless", "longer", "shorter", "uncommitted"])
    case .journalShape: .words(["cut", "count"])
    case .header: .words(["zero", "rand"])
    case .firstPage: .words(["zero", "rand", "stale"])
    case .drift:
      .words(["column", "table", "index", "trigger", "key-row", "key-maximum", "entity-number", "model-cache"])
    case .none, .roots, .interior, .tornFirstPage, .freelist, .pointerMaps, .overflow, .pageCount, .pageSize, .encoding,
      .text, .emptied, .logMissing, .logFrame, .logHeader, .logTail, .logForeign, .journalMissing, .journalHeader:
      .nothing
    }
  }

  package var usage: String {
    switch form {
    case .nothing: rawValue
    case .words(let words): "\(rawValue):\(words.joined(separator: "|"))"
    case .number(_, _, let unit): "\(rawValue):\(unit.hasPrefix("percent") ? "P" : "N")"
    }
  }

  package var words: String {
    switch self {
    case .none: "nothing: a copy"
    case .zero: "P % of the pages, never the first, are zeroed, as by a write that never reached the disk"
    case .random: "P % of the pages, never the first, are overwritten with random bytes"
    case .bitFlips: "N bits in each MiB are flipped, none in the first 100 bytes"
    case .truncated: "the last P % of the file are cut off, within a page"
    case .header: "the first 100 bytes are destroyed"
    case .firstPage: "the first page is destroyed, or replaced by another leaf page; the schema is lost"
    case .roots: "the root page of every table is overwritten with random bytes"
    case .interior: "every page that leads to other pages of a tree is overwritten with random bytes"
    case .swapped: "P % of the pages, never the first, are exchanged in pairs"
    case .torn: "P % of the pages lose one sector of 512 bytes"
    case .sector:
      "every fiftieth sector of 512 bytes is overwritten or exchanged with another one, or a block of another file begins there"
    case .tornFirstPage: "the first page loses its first sector"
    case .pageHeaders: "P % of the pages, never the first, begin with eight random bytes"
    case .declaration: "one bit or one word of a table's declaration is wrong"
    case .field: "one field of the header, or the number of cells of the first page, is wrong"
    case .inserted: "N random bytes are put into the file behind its first page"
    case .removed: "N bytes are taken out of the file behind its first page"
    case .logShape: "the log lacks its header, has one byte more or less in its middle, or no mark of a commit"
    case .logPartial: "of the pages that the log has P % are written into the file, and the log is gone"
    case .journalShape: "the rollback journal ends half-way, or counts no page"
    case .freelist: "the list of free pages is garbage, and begins with a page in use"
    case .stale: "P % of the pages, never the first, are replaced by copies of other pages"
    case .cellPointers: "P % of the leaf pages lose the array that says where their cells are"
    case .pointerMaps: "every pointer-map page is zeroed"
    case .overflow: "every overflow chain is broken at its second page"
    case .pageCount: "the header claims twice as many pages as there are"
    case .pageSize: "the header claims another page size"
    case .encoding: "the header claims another text encoding"
    case .text: "the first 4096 bytes are overwritten with text, as by another program"
    case .emptied: "the file has no bytes left"
    case .prefix: "N random bytes stand before the file"
    case .embedded: "N random bytes stand before the file, and 64 KiB of them after it"
    case .logMissing: "the write-ahead log is gone"
    case .logFrame: "one frame in the middle of the log has a flipped bit"
    case .logHeader: "the first 32 bytes of the log are destroyed"
    case .logTail: "the log ends in the middle of a frame, half-way"
    case .logForeign: "the log is one of another database: sound, with pages that are none of the store's"
    case .journalMissing: "the rollback journal is gone"
    case .journalHeader: "the first sector of the rollback journal is zeroed"
    case .drift: "every page is sound, but one thing of the schema or the bookkeeping is gone or wrong; Core Data only"
    }
  }
}

extension DamageKind {
  private static func unknown(_ text: String, _ detail: String) -> PersistentStoreError {
    PersistentStoreError(.unknownDamage, operation: "understand the damage \"\(printable(text))\"", detail: detail)
  }

  func nothing(_ path: FilePath, _ detail: String) -> PersistentStoreError {
    PersistentStoreError(.nothingToDamage, operation: "do the damage \"\(self)\"", path: path, detail: detail)
  }
}
