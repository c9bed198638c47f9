public import Platform
internal import SQLiteFormat
public import Salvage
public import SystemPackage

/// Makes a scrubbed copy of a store: the same pages and damage, with pseudonyms for values.
///
/// The store is only read. The first pass notes every value, so that no pseudonym equals one and indexed values keep
/// their order; the second writes. Then ``ResultCheck``, which shares no code with this module, compares each file with
/// the original. Memory grows with the distinct values, by five bytes each plus indexed text, and is bounded by the
/// store's size.
public struct StoreScrubber: Sendable {
  /// The phase of a scrub.
  public enum Phase: String, Sendable {
    case survey

    case notes

    case writing

    /// Searching the output for original values.
    case check
  }

  /// The result of a scrub.
  public struct Result: Sendable {
    /// The report.
    public var report: ScrubReport

    /// The scanner for the store's values in other files.
    public var scanner: ValueScanner

    /// The output files.
    public var files: StoreFileSet

    /// The names of schema and model.
    var names: [String]

    /// The numbers without a pseudonym outside the store.
    var stuckNumbers: Int64

    /// The check's search, for texts.
    package internal(set) var search: ValueSearch?

    /// The duration of the check, over all attempts.
    public internal(set) var checkDuration = Duration.zero

    /// The number of checked bytes.
    public internal(set) var checkedBytes: Int64 = 0
  }

  /// Receives the work done and the total; returns false to end with `cancelled`.
  public typealias Progress = @Sendable (_ phase: Phase, _ done: Int64, _ total: Int64) -> Bool

  let key: ScrubbingKey
  let model: SalvageModel?
  let rules: ScrubRules
  let fileSystem: FileSystem

  /// The retries with other pseudonyms after a failed check.
  private static let attempts = 4

  /// Creates a scrubber.
  ///
  /// - Parameters:
  ///   - key: the secret of the pseudonyms, which stays with the owner.
  ///   - model: the app's model; if nil, the store's own.
  ///   - rules: the columns to keep or overwrite.
  public init(
    key: ScrubbingKey, model: SalvageModel? = nil, rules: ScrubRules = ScrubRules(),
    fileSystem: FileSystem = FileSystem()
  ) {
    self.key = key
    self.model = model
    self.rules = rules
    self.fileSystem = fileSystem
  }

  /// Scrubs a store into a folder, under the same names, without the WAL index.
  ///
  /// - Parameter folder: the output folder, which must not contain these names.
  /// - Throws: ``SupportBundleError`` or `FileError`, after removing the output.
  public func scrub(
    _ store: StoreFileSet, into folder: FilePath, progress: @escaping Progress = { _, _, _ in true }
  ) throws -> Result {
    let target = StoreFileSet(main: folder.appending(store.main.lastComponent ?? "Store"))
    for member in try target.members(in: fileSystem) {
      throw FileError(.alreadyExists, operation: "scrub the store", path: member.path)
    }
    do {
      let work = try ScrubWork(
        store: store, target: target, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress)
      var checkDuration = Duration.zero
      for attempt in 0..<Self.attempts {
        var result = try work.run(attempt: attempt)
        result.checkDuration = checkDuration
        guard let found = try work.check(&result) else {
          try work.requireUnchanged()
          try work.listFiles(in: &result.report)
          return result
        }
        checkDuration = result.checkDuration
        Self.discard(target, in: fileSystem)
        guard attempt + 1 < Self.attempts else {
          throw SupportBundleError(.valuesFound, path: store.main, detail: found)
        }
      }
      throw SupportBundleError.cancelled(SupportBundleErrors.scrubbing)
    } catch {
      Self.discard(target, in: fileSystem)
      throw error
    }
  }

  private static func discard(_ target: StoreFileSet, in fileSystem: FileSystem) {
    for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
    try? fileSystem.removeTree(target.path(of: .externalData))
  }
}

extension StoreScrubber {
  /// Returns a scanner for a store's values in other files, without writing.
  ///
  /// - Throws: ``SupportBundleError``, `SalvageError` or `FileError`.
  public func scanner(
    of store: StoreFileSet, progress: @escaping Progress = { _, _, _ in true }
  ) throws -> ValueScanner {
    try ScrubWork(
      store: store, target: store, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress
    ).scanner()
  }
}

struct ScrubWork {
  let store: StoreFileSet
  let target: StoreFileSet
  let key: ScrubbingKey
  let wanted: ScrubRules
  let fileSystem: FileSystem
  let progress: StoreScrubber.Progress

  private let main: ReadableFile
  private let log: (any ByteSource)?
  private let journal: (any ByteSource)?

  /// The survey; nil without database pages.
  private let survey: StoreSurvey?

  init(
    store: StoreFileSet, target: StoreFileSet, key: ScrubbingKey, model: SalvageModel?, rules: ScrubRules,
    fileSystem: FileSystem, progress: @escaping StoreScrubber.Progress
  ) throws {
    self.store = store
    self.target = target
    self.key = key
    wanted = rules
    self.fileSystem = fileSystem
    self.progress = progress
    main = try fileSystem.open(store.main)
    log = try store.open(.wal, in: fileSystem)
    journal = try store.open(.journal, in: fileSystem)
    do throws(SalvageError) {
      survey = try StoreSurvey.of(store.main, model: model, in: fileSystem) { _, done, total in
        progress(.survey, done, total)
      }
    } catch {
      guard error.kind == .nothingFound else { throw SupportBundleError(scrubbing: error) }
      survey = nil
    }
  }

  /// - Parameter ranksDates: whether dates are replaced like other numbers; otherwise only as a last resort.
  func run(attempt: Int, ranksDates: Bool = false) throws -> StoreScrubber.Result {
    let (columns, pseudonyms, external, images) = try noted(attempt: attempt, ranksDates: ranksDates)
    if pseudonyms.dates.isImpossible, !ranksDates { return try run(attempt: attempt, ranksDates: true) }
    let outputs = try ScrubbedSet(target, main: main, log: log, journal: journal, in: fileSystem)
    var report = ScrubReport()
    if let survey, let columns, let images {
      let run = ScrubRun(survey, images, columns, pseudonyms, into: outputs) { progress(.writing, $0, $1) }
      try Self.run(run) {
        ScrubRun(survey, images, columns, Pseudonyms(like: pseudonyms, isCopy: true), into: outputs) {
          progress(.writing, 2 * $0, $1)
        }
      }
      try writeRest(images, outputs, pseudonyms, &run.tally)
      try separatePages(run, outputs)
      try outputs.synchronize()
      fill(&report, run, columns, pseudonyms)
    } else {
      var tally = ScrubTally()
      let parts: [(StoreFileSet.Part, (any ByteSource)?)] = [(.main, main), (.wal, log), (.journal, journal)]
      for case (let part, let source?) in parts {
        try noise(part, source, 0..<source.count, outputs, pseudonyms, &tally)
      }
      try outputs.synchronize()
      tally.fillGaps(of: &report)
      report.remarks.append("no page of a database was found; everything was overwritten with noise")
    }
    try external.write(pseudonyms)
    if external.count > 0 {
      report.remarks.append("\(external.count) values in files of their own were overwritten with noise")
    }
    report.keeping = wanted.keeping.sorted()
    report.dropping = wanted.dropping.sorted()
    return StoreScrubber.Result(
      report: report, scanner: ValueScanner(watched: pseudonyms.watched), files: target,
      names: columns?.words ?? [], stuckNumbers: pseudonyms.stuckNumbers)
  }

  /// Notes every value without writing.
  func scanner() throws -> ValueScanner {
    ValueScanner(watched: try noted(attempt: 0, ranksDates: false).pseudonyms.watched)
  }

  /// Notes every value, then makes the pseudonyms; returns the images with the tables found on them.
  private func noted(attempt: Int, ranksDates: Bool) throws -> (
    columns: ColumnRules?, pseudonyms: Pseudonyms, external: ExternalValues, images: PageImages?
  ) {
    let columns = try survey.map { try ColumnRules($0, wanted) }
    let pseudonyms = Pseudonyms(
      key: key, attempt: attempt, encoding: survey?.encoding ?? .utf8, bytes: main.count, ranksDates: ranksDates,
      columns: columns, model: survey?.modelBytes, isDamaged: survey?.isDamaged ?? false)
    var external = ExternalValues(
      source: store.path(of: .externalData), target: target.path(of: .externalData), fileSystem: fileSystem)
    try external.note(pseudonyms)
    var images = try survey.map { try PageImages(main: main, log: log, journal: journal, survey: $0) }
    if let survey, let columns, let found = images {
      let run = ScrubRun(survey, found, columns, pseudonyms, into: nil) { progress(.notes, $0, $1) }
      try Self.run(run) {
        ScrubRun(survey, found, columns, Pseudonyms(like: pseudonyms), into: nil) { progress(.notes, 2 * $0, $1) }
      }
      // These are not user data.
      for word in columns.words + ["SQLite format 3"] { pseudonyms.keep(word: word) }
      images = run.images
    }
    pseudonyms.assignPseudonyms()
    return (columns, pseudonyms, external, images)
  }

  /// The page count for two threads.
  private static let parallelPages: UInt32 = 4096

  /// Processes all pages, in a sound store with two threads, as live pages are independent.
  private static func run(_ run: ScrubRun, second: () -> ScrubRun) throws {
    let count = run.images.pageCount
    guard !run.survey.isDamaged, count >= Self.parallelPages else { return try run.run() }
    let other = second()
    try Pair.run({ try run.runLive(1...(count / 2)) }, { try other.runLive((count / 2 + 1)...count) })
    run.take(other)
    try run.runRest()
  }

  private func fill(_ report: inout ScrubReport, _ run: ScrubRun, _ columns: ColumnRules, _ pseudonyms: Pseudonyms) {
    let tally = run.tally
    for (tree, facts) in run.survey.trees.enumerated() {
      for (field, counts) in tally.fields[tree].enumerated() where !counts.isEmpty {
        report.columns.append(
          ScrubReport.Column(
            table: facts.name, name: columns.names[tree][field], isOrdered: columns.rules[tree][field].isOrdered,
            counts: counts))
      }
    }
    (report.staying, report.columnCount) = columns.staying(run.survey, pseudonyms.domains)
    report.elsewhere = tally.fields.last?.first ?? ScrubReport.Counts()
    report.pages = tally.pages
    tally.fillGaps(of: &report)
    report.watchedValues = pseudonyms.watched.count
    report.exemptValues = pseudonyms.watched.exempt.count
    report.keptMatches = tally.keptMatches
    report.chanceMatches = run.chances.values.reduce(0) { $0 + Int64($1.count) }
    report.unwatchedValues = pseudonyms.watched.unwatched
    report.unorderedValues =
      pseudonyms.orderedTexts.leftOut + pseudonyms.orderedNumbers.leftOut + pseudonyms.domains.leftOut
    report.tightValues = pseudonyms.orderedTexts.unclean + pseudonyms.tightNumbers
    report.changedPlaces = run.changedPlaces
    report.datesShifted = pseudonyms.dates.seconds != 0
    report.dateShiftHasSeconds = pseudonyms.dates.hasSeconds
    report.datesRanked = pseudonyms.ranksDates
    report.remarks += columns.remarks
  }

  /// Overwrites values across two pages, if one may be overwritten.
  private func separatePages(_ run: ScrubRun, _ outputs: ScrubbedSet) throws(FileError) {
    guard run.unsurePages.count > 0 else { return }
    let images = run.images
    let written = try outputs.open(.main)
    let reach = WatchedValues.longestForm
    for page in images.pages where run.unsurePages.contains(page) {
      let start = images.offset(of: .main(page))
      for border in [start, start + Int64(images.pageSize)] where border >= Int64(reach) {
        var bytes = try written.bytes(at: border - Int64(reach), length: 2 * reach)
        // Change this page only.
        let own = border == start ? reach..<max(reach, bytes.count) : 0..<min(reach, bytes.count)
        var offset = 0
        var isChanged = false
        while let hit = run.pseudonyms.firstHit(bytes.span, from: offset, before: bytes.count) {
          offset = hit.range.lowerBound + 1
          for place in hit.range where own.contains(place) {
            bytes[place] = 0xff
            isChanged = true
          }
        }
        guard isChanged else { continue }
        run.changedPlaces += 1
        try outputs.write(.main, Array(bytes[own]), at: border - Int64(reach) + Int64(own.lowerBound))
      }
    }
  }

  // MARK: Other bytes

  private func writeRest(
    _ images: PageImages, _ outputs: ScrubbedSet, _ pseudonyms: Pseudonyms, _ tally: inout ScrubTally
  ) throws(FileError) {
    try noise(.main, main, 0..<min(images.base, main.count), outputs, pseudonyms, &tally)
    let end = images.base + Int64(images.pageCount) * Int64(images.pageSize)
    if end < main.count { try noise(.main, main, end..<main.count, outputs, pseudonyms, &tally) }
    if let log, log.count > 0 { try writeLog(log, images, outputs, pseudonyms, &tally) }
    try JournalRewriting(images: images).run(outputs)
  }

  private func writeLog(
    _ log: any ByteSource, _ images: PageImages, _ outputs: ScrubbedSet, _ pseudonyms: Pseudonyms,
    _ tally: inout ScrubTally
  ) throws(FileError) {
    let bytes = try log.bytes(at: 0, length: WriteAheadLog.Header.length)
    let header = WriteAheadLog.Header(bytes)
    // A malformed header may hold any data.
    try outputs.write(.wal, header == nil ? Self.filled(bytes) : bytes, at: 0)
    let highest = Int64(images.pageCount) + Int64(images.frames.count) + 65536
    var frameLength = images.pageSize + WriteAheadLog.frameHeaderLength
    let isOther = images.frames.isEmpty
    if isOther, let size = header?.pageSize { frameLength = size + WriteAheadLog.frameHeaderLength }
    for offset in stride(from: Int64(WriteAheadLog.Header.length), to: log.count, by: frameLength) {
      let head = try log.bytes(at: offset, length: WriteAheadLog.frameHeaderLength)
      let isPossible = Int64(head.span.uint32(at: 0) ?? .max) <= highest
      try outputs.write(.wal, isPossible ? head : Self.filled(head), at: offset)
      let end = min(log.count, offset + Int64(frameLength))
      // Whole frames are already written.
      if isOther || end < offset + Int64(frameLength) {
        let start = min(end, offset + Int64(WriteAheadLog.frameHeaderLength))
        try noise(.wal, log, start..<end, outputs, pseudonyms, &tally)
      }
    }
    try LogRewriting(original: log, frameLength: frameLength).run(outputs)
  }

  private static func filled(_ bytes: [UInt8]) -> [UInt8] { bytes.map { $0 == 0 ? 0 : 0xff } }

  /// Overwrites a range with noise, except zeros.
  private func noise(
    _ part: StoreFileSet.Part, _ source: any ByteSource, _ range: Range<Int64>, _ outputs: ScrubbedSet,
    _ pseudonyms: Pseudonyms, _ tally: inout ScrubTally
  ) throws(FileError) {
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: 65536) {
      var bytes = try source.bytes(at: offset, length: Int(min(65536, range.upperBound - offset)))
      if bytes.isEmpty { return }
      pseudonyms.replaceNoise(&bytes, bytes.indices, seededBy: bytes.indices, tweak: 11)
      try outputs.write(part, bytes, at: offset)
      tally.gap(part, offset, bytes.count)
    }
  }

  // MARK: The check

  /// Runs the independent check; returns findings in words.
  func check(_ result: inout StoreScrubber.Result) throws -> String? {
    if result.stuckNumbers > 0 {
      // Compared while writing: short integers match by chance anywhere.
      return "\(result.stuckNumbers) numbers are of a width of which every number is one of the store's"
    }
    let begin = ContinuousClock.now
    // The store's header may be wrong.
    let pages = survey.map { ResultCheck.PageHint(pageSize: $0.pageSize, base: $0.base) }
    let check = ResultCheck(
      of: store, keeping: wanted.keeping, dropping: wanted.dropping, names: result.names,
      model: survey?.modelBytes, pages: pages, in: fileSystem)
    let outcome = try check.run(on: target) { [progress] in progress(.check, $0, $1) }
    guard let outcome else { throw SupportBundleError.cancelled(SupportBundleErrors.scrubbing) }
    let findings = outcome.findings
    result.search = outcome.search
    result.checkDuration += begin.duration(to: .now)
    result.checkedBytes = findings.bytes
    guard let first = findings.places.first else { return nil }
    return "original values were found in \(findings.count) places of what was written, the first \(first.words)"
  }

  /// Throws if the store was written to meanwhile.
  func requireUnchanged() throws {
    let now = try main.currentStatus()
    guard now.size == main.status.size, now.modified == main.status.modified else {
      throw SupportBundleError(.storeChanged, path: store.main, detail: "it was written to meanwhile")
    }
  }

  func listFiles(in report: inout ScrubReport) throws {
    for member in try target.members(in: fileSystem) {
      let isFolder = member.status.kind == .directory
      guard isFolder || member.status.kind == .regular else { continue }
      for path in try isFolder ? fileSystem.descendants(of: member.path).files.map(\.path) : [member.path] {
        let size = try fileSystem.status(of: path)?.size ?? 0
        let name = path.string.dropFirst(target.folder.string.count).drop { $0 == "/" }
        report.files.append(ScrubReport.File(name: PathText(FilePath(String(name))), size: size))
      }
    }
  }
}
