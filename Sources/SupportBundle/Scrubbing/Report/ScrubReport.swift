public import Platform

/// What a scrub did: what was replaced and where, what stayed and why, and what could not be understood.
///
/// No value of any record is in it.
public struct ScrubReport: Sendable, Hashable, Codable {
  /// How many values had each outcome.
  public struct Counts: Sendable, Hashable, Codable {
    /// Pseudonyms were put in their place.
    public var replaced: Int64 = 0

    /// Dates that were shifted.
    public var shifted: Int64 = 0

    /// Values that stayed: keys and flags of up to six digits, columns of few different numbers, bookkeeping, exempted columns.
    public var kept: Int64 = 0

    /// Values that were overwritten with filling.
    public var dropped: Int64 = 0

    /// None of any.
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
      replaced += other.replaced
      shifted += other.shifted
      kept += other.kept
      dropped += other.dropped
    }

    var isEmpty: Bool { replaced + shifted + kept + dropped == 0 }
  }

  /// The values of one column, on pages in use, in deleted rows and in indexes.
  public struct Column: Sendable, Hashable, Codable {
    /// The table, or the index.
    public var table: String

    /// `Entity.attribute` where there is a model, else the column.
    public var name: String

    /// Whether an index has the column, so that the order of its values stayed and the first characters may be guessed.
    public var isOrdered: Bool

    /// What became of its values.
    public var counts: Counts
  }

  /// A column of the app's that stays as it is.
  public struct Staying: Sendable, Hashable, Codable {
    /// Why it stays.
    public enum Reason: String, Sendable, Hashable, Codable {
      /// It was asked for.
      case kept

      /// A condition or an expression of the schema names it.
      case condition

      /// It has flags, or nothing but 0 and 1.
      case flag

      /// It is a key by its name.
      case key
    }

    /// `Entity.attribute` where there is a model, else `table.column`.
    public var name: String

    /// Why its values stay.
    public var reason: Reason
  }

  /// Page images, in all files, by what became of them.
  public struct Pages: Sendable, Hashable, Codable {
    /// Pages of tables and indexes that were rewritten value by value.
    public var rewritten: Int64 = 0

    /// Overflow pages that were rewritten with their row.
    public var overflow: Int64 = 0

    /// Pages with pieces of text that nothing leads to.
    public var pieces: Int64 = 0

    /// Pages that hold no values: pointer maps, lists of free pages, zeros.
    public var structural: Int64 = 0

    /// Pages that hold noise now, because they could not be read.
    public var noise: Int64 = 0

    mutating func add(_ other: Pages) {
      rewritten += other.rewritten
      overflow += other.overflow
      pieces += other.pieces
      structural += other.structural
      noise += other.noise
    }
  }

  /// Bytes that could not be understood and were overwritten.
  public struct Gap: Sendable, Hashable, Codable {
    /// The part of the store.
    public var file: String

    /// Where they begin.
    public var offset: Int64

    /// How many there are.
    public var length: Int
  }

  /// A file of the result.
  public struct File: Sendable, Hashable, Codable {
    /// Its path below the folder of the result.
    public var name: PathText

    /// Its bytes.
    public var size: Int64
  }

  /// The version of this report's form.
  public var formatVersion = 1

  /// The files that were written.
  public var files: [File] = []

  /// The columns that had any values.
  public var columns: [Column] = []

  /// The columns of which the integers of up to six digits, or all values, stay, without primary keys and references.
  public var staying: [Staying] = []

  /// How many columns the app's own tables have.
  public var columnCount = 0

  /// Values on pages that belong to no known table.
  public var elsewhere = Counts()

  /// Page images by outcome.
  public var pages = Pages()

  /// What was not understood; of more than 10,000 the first.
  public var gaps: [Gap] = []

  /// How many such ranges there are in all.
  public var gapCount = 0

  /// How many bytes they have.
  public var gapBytes: Int64 = 0

  /// The attributes that stayed by exemption.
  public var keeping: [String] = []

  /// The attributes that were overwritten with filling.
  public var dropping: [String] = []

  /// The different values that the check looked for.
  public var watchedValues = 0

  /// Those that may be found after all, for one of the two reasons below.
  public var exemptValues = 0

  /// Places where a value is also a word of the schema, of the model, of Core Data's own, or of a column that stays.
  public var keptMatches: Int64 = 0

  /// Places where bytes of structure or of numbers happen to spell a value.
  public var chanceMatches: Int64 = 0

  /// Values that found no room in the check.
  public var unwatchedValues: Int64 = 0

  /// Values of indexed columns that found no room, so that their order was not kept.
  public var unorderedValues: Int64 = 0

  /// Values of indexed columns for which no pseudonym in their order is free of original values.
  ///
  /// There is one only where the check found nothing all the same. Among them are the largest reals, which stay, and numbers whose
  /// pseudonym is another number of the store's.
  public var tightValues: Int64 = 0

  /// Single places that were changed because an original value happened to be in one pseudonym or across two.
  public var changedPlaces: Int64 = 0

  /// Whether all dates were shifted, by one time and a jitter.
  public var datesShifted = false

  /// Whether that time is no whole number of days.
  public var dateShiftHasSeconds = false

  /// Whether no time was found by which all dates could be shifted, so that they were replaced like other numbers, in their
  /// order.
  public var datesRanked = false

  /// What else is to be said.
  public var remarks: [String] = []
}

extension ScrubReport {
  /// The columns that stay, in one line, without what comes behind it: "Stay as they are: patient.salary, .hiv (2 of 9 columns)".
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

  /// The values that stay in every column, as a sentence.
  public var alwaysStaying: String {
    "Primary keys and references of up to six digits stay too, so that records stay linked, and so do the numbers 0 and 1."
  }
}
