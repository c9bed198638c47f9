public import Platform

/// The result of a scrub: what was replaced, kept with which reason, and unreadable.
///
/// It holds no record values.
public struct ScrubReport: Sendable, Hashable, Codable {
  /// Numbers of values by outcome.
  public struct Counts: Sendable, Hashable, Codable {
    /// Values replaced by pseudonyms.
    public var replaced: Int64 = 0

    /// Shifted dates.
    public var shifted: Int64 = 0

    /// Kept values: keys and flags of up to six digits, columns of few different numbers, bookkeeping, exempted
    /// columns.
    public var kept: Int64 = 0

    /// Values overwritten with filler.
    public var dropped: Int64 = 0

    /// Creates zero counts.
    public init() {}

    mutating func add(_ outcome: Pseudonyms.Outcome) {
      switch outcome {
      case .replaced, .ordered, .partly: replaced += 1
      case .shifted: shifted += 1
      case .kept: kept += 1
      case .dropped: dropped += 1
      case .nothing: break
      }
    }

    mutating func add(_ other: Counts) {
      for count in [\Self.replaced, \.shifted, \.kept, \.dropped] { self[keyPath: count] += other[keyPath: count] }
    }

    var isEmpty: Bool { replaced + shifted + kept + dropped == 0 }
  }

  /// The values of one column in live records, deleted records and indexes.
  public struct Column: Sendable, Hashable, Codable {
    /// The table or index.
    public var table: String

    /// `Entity.attribute` with a model, otherwise the column.
    public var name: String

    /// Whether the column is indexed, so that its order stayed and first characters may be guessed.
    public var isOrdered: Bool

    /// The counts by outcome.
    public var counts: Counts
  }

  /// A kept column of the app.
  public struct Staying: Sendable, Hashable, Codable {
    /// The reason for keeping a column.
    public enum Reason: String, Sendable, Hashable, Codable {
      /// The caller asked for it.
      case kept

      /// A condition or expression of the schema names it.
      case condition

      /// It holds flags, or only 0 and 1.
      case flag

      /// Its name marks it as a key.
      case key
    }

    /// `Entity.attribute` with a model, otherwise `table.column`.
    public var name: String

    /// The reason.
    public var reason: Reason
  }

  /// Page images of all files by outcome.
  public struct Pages: Sendable, Hashable, Codable {
    /// B-tree pages rewritten value by value.
    public var rewritten: Int64 = 0

    /// Overflow pages rewritten with their row.
    public var overflow: Int64 = 0

    /// Pages with unreferenced pieces of text.
    public var pieces: Int64 = 0

    /// Pages without values: pointer maps, freelist trunks, zeros.
    public var structural: Int64 = 0

    /// Unreadable pages, now noise.
    public var noise: Int64 = 0

    mutating func add(_ other: Pages) {
      for count in [\Self.rewritten, \.overflow, \.pieces, \.structural, \.noise] {
        self[keyPath: count] += other[keyPath: count]
      }
    }
  }

  /// Overwritten bytes of unknown meaning.
  public struct Gap: Sendable, Hashable, Codable {
    /// The part of the store.
    public var file: String

    /// The offset.
    public var offset: Int64

    /// The length.
    public var length: Int
  }

  /// An output file.
  public struct File: Sendable, Hashable, Codable {
    /// The path below the output folder.
    public var name: PathText

    /// The size in bytes.
    public var size: Int64
  }

  /// The version of this format.
  public var formatVersion = 1

  /// The output files.
  public var files: [File] = []

  /// The columns with values.
  public var columns: [Column] = []

  /// The columns that keep integers of up to six digits or all values, without primary keys and references.
  public var staying: [Staying] = []

  /// The number of columns in the app's tables.
  public var columnCount = 0

  /// Values on pages of no known table.
  public var elsewhere = Counts()

  /// Page images by outcome.
  public var pages = Pages()

  /// The first 10,000 gaps.
  public var gaps: [Gap] = []

  /// The number of all gaps.
  public var gapCount = 0

  /// The bytes of all gaps.
  public var gapBytes: Int64 = 0

  /// The exempted attributes.
  public var keeping: [String] = []

  /// The attributes overwritten with filler.
  public var dropping: [String] = []

  /// The number of distinct values that the check searched for.
  public var watchedValues = 0

  /// The number of values that may remain, because of kept or chance matches.
  public var exemptValues = 0

  /// Matches with words of the schema, the model, Core Data or a kept column.
  public var keptMatches: Int64 = 0

  /// Matches with structure or numbers by chance.
  public var chanceMatches: Int64 = 0

  /// Values that exceeded the check's capacity.
  public var unwatchedValues: Int64 = 0

  /// Indexed values that exceeded the capacity, so that their order was lost.
  public var unorderedValues: Int64 = 0

  /// Indexed values without an ordered pseudonym free of original values.
  ///
  /// Their number is nonzero only if the check found none of them. They include the largest reals, which stay, and
  /// numbers with another number of the store as pseudonym.
  public var tightValues: Int64 = 0

  /// Places changed because an original value appeared within or across pseudonyms.
  public var changedPlaces: Int64 = 0

  /// Whether all dates were shifted, by one duration and a jitter.
  public var datesShifted = false

  /// Whether the shift is not in whole days.
  public var dateShiftHasSeconds = false

  /// Whether no shift fitted all dates, so that they were replaced like other numbers, in order.
  public var datesRanked = false

  /// Further remarks.
  public var remarks: [String] = []
}

extension ScrubReport {
  /// The kept columns in one line: "Stay as they are: patient.salary, .hiv (2 of 9 columns)".
  public var stayingWords: String {
    guard !staying.isEmpty else { return "No column of \(columnCount) stays as it is" }
    var (names, owner) = ([String](), "")
    for column in staying.prefix(Self.mostNames) {
      let parts = column.name.split(separator: ".", maxSplits: 1)
      let isSame = parts.count == 2 && parts[0] == owner
      names.append(printable(isSame ? ".\(parts[1])" : column.name))
      owner = parts.count == 2 ? String(parts[0]) : ""
    }
    let rest = staying.count > Self.mostNames ? " and \(staying.count - Self.mostNames) more" : ""
    return
      "\(staying.count == 1 ? "Stays as it is" : "Stay as they are"): \(names.joined(separator: ", "))\(rest) (\(staying.count) of \(columnCount) columns)"
  }

  private static let mostNames = 30

  /// The values kept in every column, as a sentence.
  public var alwaysStaying: String {
    "Primary keys and references of up to six digits stay too, so that records stay linked, and so do the numbers 0 and 1."
  }
}
