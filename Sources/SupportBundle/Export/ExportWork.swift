internal import Foundation
internal import Lazaret
internal import PersistentStore
internal import Platform
internal import Salvage
internal import SystemPackage

/// One export, from evidence to files.
struct ExportWork: Sendable {
  let source: ExportSource
  let options: ExportOptions
  let home: FilePath
  let place: ExportFolder.Place
  let surroundings: Surroundings
  let progress: ExportProgress

  var fileSystem: FileSystem { surroundings.fileSystem }

  var bundledName: String { "\(ModelFiles.plain(source.name)).sqlite" }

  /// Returns the time, reduced to the month when scrubbing: a store's newest date is close to now, which would reveal
  /// the date shift.
  private func now() -> Timestamp {
    options.level == .scrubbed ? surroundings.now().beginningOfMonth : surroundings.now()
  }

  /// - Parameter least: the store size from which scrub and analysis run concurrently.
  func make(scrubbingBesideFrom least: Int64) throws -> PreparedExport {
    let date = now()
    let folder = try ExportFolder(place, home: home, surroundings: surroundings)
    let evidence: ExportEvidence
    switch source {
    case .store(let path):
      evidence = try ExportEvidence(copying: path, into: folder, fileSystem: fileSystem, progress: progress)
    case .quarantined(let stored, _): evidence = try ExportEvidence(resting: stored.files, in: fileSystem)
    }
    let isBeside = options.level == .scrubbed && evidence.bytes >= least
    let scrubbing = isBeside ? try BackgroundScrub.begin(self, evidence, in: folder) : nil
    let analysis = try ExportAnalysis.make(self, evidence, in: folder, progress)
    let texts = try texts(of: evidence, analysis, source.receipt, in: folder, date: date)
    let pages = try DamagedPages(analysis.report?.pages, analysis.pages, of: evidence)
    var sizing = ExportSizing(fileSystem: fileSystem)

    let index = BundleItem("pages/index.json", .bytes(pages.index), words: "what each of the pages is")
    let full = StoreItems.items(of: evidence, named: bundledName, "byte for byte")
    var items: [BundleItem] = []
    var scrubbed: ScrubbedStore?
    switch options.level {
    case .facts: break
    case .damagedPages:
      try folder.requireRoom(pages.size)
      let path = folder.path.appending("pages.bin")
      try pages.write(to: path, from: evidence.files, in: fileSystem) { !progress(.packing, 0, 1) }
      let content = BundleItem.Content.file(path, size: pages.size)
      items += [index, BundleItem("pages/pages.bin", content, words: "the damaged pages, as they are")]
    case .scrubbed:
      let made = try scrubbing?.value() ?? ScrubbedStore(self, evidence, in: folder.path)
      items += made.items
      scrubbed = made
    case .full: items += full
    }
    let staying = scrubbed.map { "\($0.result.report.stayingWords).\n\($0.result.report.alwaysStaying)" } ?? ""
    items += texts.items(options.level, staying: staying)
    if options.level == .facts || options.level == .scrubbed {
      let check = ExportCheck(
        try scrubbed?.result.scanner ?? factsScanner(evidence, analysis), search: scrubbed?.result.search,
        marks: try FileMarks(evidence, source.receipt, in: fileSystem) { !progress(.checking, 0, Int64(items.count)) },
        names: names(in: items, analysis))
      items = try checked(items, by: check) { [scrubbed] in
        guard evidence.hasMain else { return [] }
        let scrubbed = try scrubbed ?? ScrubbedStore(self, evidence, in: folder.path)
        return try knownTexts(from: scrubbed.result.files, in: folder, date: date)
      }
    }

    var levels: [ExportPreview.Level] = []
    for level in BundleLevel.allCases {
      let isAsked = level == options.level
      let facts = texts.items(level, staying: isAsked ? staying : "")
      let others: [BundleItem]
      switch level {
      case _ where isAsked: others = items.filter { item in !facts.contains { $0.name == item.name } }
      case .facts: others = []
      case .damagedPages:
        // The ratio is estimated from the whole file.
        let content: BundleItem.Content = evidence.hasMain ? .file(evidence.files.main, size: pages.size) : .bytes([])
        others = [index, BundleItem("pages/pages.bin", content, words: "")]
      case .scrubbed: others = full.filter { !$0.name.hasSuffix("-shm") }
      case .full: others = full
      }
      levels.append(
        ExportPreview.Level(
          level: level, words: level.words,
          files: facts.count + others.count + (level == .scrubbed && !isAsked ? 1 : 0),
          bytes: (facts + others).reduce(0) { $0 + $1.size }, isExact: isAsked || level != .scrubbed,
          packedBytes: try sizing.packed(facts + others)))
    }
    let preview = ExportPreview(
      level: options.level, store: source.name, levels: levels,
      files: items.sorted { $0.name < $1.name }.map { .init(name: $0.name, bytes: $0.size, words: $0.words) },
      scrub: scrubbed?.result.report, checkSeconds: scrubbed?.checkSeconds,
      remarks: evidence.remarks + (analysis.failure.map { [$0] } ?? []))
    return PreparedExport(
      preview: preview, items: items, subject: .init(app: options.app, store: source.name, date: date), source: source,
      folder: folder, surroundings: surroundings)
  }

  // MARK: Texts

  private func texts(
    of evidence: ExportEvidence, _ analysis: ExportAnalysis, _ receipt: Receipt?, in folder: ExportFolder,
    date: Timestamp
  ) throws -> ExportTexts {
    var log = OpeningLog(now: now)
    log.add("info", "export", "lazaret \(LibraryVersion.current), SQLite \(SQLiteLibrary.version)")
    log.add(analysis.examination)
    if let failure = analysis.failure { log.add("error", "salvage", failure) }
    for remark in analysis.report?.remarks ?? [] { log.add("info", "salvage", remark) }
    for cause in analysis.report?.causes ?? [] {
      log.add("info", "salvage", "cause \(cause.code.rawValue), \(cause.confidence.rawValue): \(cause.words)")
    }
    for remark in evidence.remarks { log.add("info", "export", remark) }
    try open(evidence, in: folder, &log)
    let reduction = PathReduction(
      knowing: [
        source.originalPath, evidence.files.main, home, folder.path, FilePath(NSHomeDirectory()).appending("x"),
        FilePath(NSTemporaryDirectory()).appending("x"),
      ], tellingOnlyMonths: options.level == .scrubbed)
    return try ExportTexts(self, evidence, analysis, receipt, reduction, date: date, &log)
  }

  /// Makes the texts from a scrubbed copy; lines in both do not depend on values.
  private func knownTexts(from files: StoreFileSet, in folder: ExportFolder, date: Timestamp) throws -> [BundleItem] {
    let evidence = try ExportEvidence(resting: files, in: fileSystem)
    let quiet: ExportProgress = { [progress] _, done, total in progress(.checking, done, total) }
    let analysis = try ExportAnalysis.make(self, evidence, in: folder, usesReport: false, quiet)
    // The receipt is not derived from the store's files.
    return try texts(of: evidence, analysis, source.receipt?.withoutTexts, in: folder, date: date).items(options.level)
  }

  // MARK: Opening a copy

  private func open(_ evidence: ExportEvidence, in folder: ExportFolder, _ log: inout OpeningLog) throws {
    guard evidence.hasMain else { return }
    guard evidence.bytes <= OpeningLog.limit else {
      return log.add("info", "open", "the store is too large for opening a copy of it")
    }
    let copy = try PrivateCopy(of: evidence.files, in: folder.path, surroundings: surroundings)
    log.open(copy.files)
    copy.remove()
  }

  // MARK: The check

  /// Whether a text has only content of ours, of the schema or of fixed types.
  private static func isOthers(_ name: String) -> Bool {
    name.hasPrefix("store/") || name.hasPrefix("model/")
      || ["README.txt", "system.json", "schema.sql", "scrub.json"].contains(name)
  }

  /// Returns texts without values of the store or marks of its files.
  ///
  /// A value may equal our own words: lines that a scrubbed copy shares are clean, and a text with other findings is
  /// replaced by the copy's.
  ///
  /// - Parameter known: makes the texts of a scrubbed copy.
  private func checked(
    _ items: [BundleItem], by check: ExportCheck, known: () throws -> [BundleItem]
  ) throws -> [BundleItem] {
    var check = check
    var suspects: [(place: Int, bytes: [UInt8])] = []
    for (number, item) in items.enumerated() {
      guard progress(.checking, Int64(number), Int64(items.count)) else { throw SupportBundleErrors.cancelled() }
      guard case .bytes(let bytes) = item.content else { continue }
      if check.leaks(in: bytes, named: item.name, isOthers: Self.isOthers(item.name)) != nil {
        suspects.append((number, bytes))
      }
    }
    guard !suspects.isEmpty else { return items }
    let texts = try known()
    for item in texts { if case .bytes(let bytes) = item.content { check.know(bytes, named: item.name) } }
    var items = items
    for suspect in suspects {
      let item = items[suspect.place]
      let isOthers = Self.isOthers(item.name)
      guard let (count, first) = check.leaks(in: suspect.bytes, named: item.name, isOthers: isOthers) else { continue }
      guard !isOthers, let text = texts.first(where: { $0.name == item.name }) else {
        throw SupportBundleErrors.notScrubbed(
          source.originalPath, count: count, in: first.name, at: first.offset, keeping: options.keeping)
      }
      items[suspect.place] = BundleItem(
        item.name, text.content, words: item.words + "; made of the scrubbed copy, as its own has what is also a value")
    }
    return items
  }

  /// Collects known names of schema, model, software and file.
  private func names(in items: [BundleItem], _ analysis: ExportAnalysis) -> [String] {
    let versions = SoftwareVersions(analysis.examination, app: options.appVersion ?? source.receipt?.versions.app)
    var names = [
      source.name, options.app ?? "", bundledName, versions.app, versions.library, versions.sqlite,
      versions.storeWrittenBySQLite, versions.operatingSystem, source.receipt?.versions.storeWrittenBySQLite,
      source.receipt?.versions.operatingSystem, source.receipt?.versions.sqlite, source.receipt?.versions.library,
    ].compactMap(\.self)
    for item in items where item.name == "schema.sql" || item.name.hasSuffix("/model.json") {
      if case .bytes(let bytes) = item.content { names.append(String(decoding: bytes, as: UTF8.self)) }
    }
    for entity in analysis.report?.entities ?? [] { names += [entity.name, entity.table] }
    for owner in analysis.report?.pages.owners ?? [] { names += [owner.name, owner.table] }
    for entity in analysis.examination.entities { names += [entity.name, entity.table] }
    return names
  }

  private func factsScanner(_ evidence: ExportEvidence, _ analysis: ExportAnalysis) throws -> ValueScanner? {
    guard options.level == .facts, evidence.hasMain, analysis.report != nil else { return nil }
    return try ScrubbedStore.scanner(self, evidence)
  }
}

/// Estimates packed sizes from samples.
struct ExportSizing {
  let fileSystem: FileSystem

  var ratios: [String: Double] = [:]

  private static let sample = 64 << 10
  private static let samples: Int64 = 24

  mutating func packed(_ items: [BundleItem]) throws -> Int64 {
    var total: Int64 = 1500 + Int64(items.count) * 100
    let level = BundleWriter.packingLevel(items.reduce(0) { $0 + $1.size })
    for item in items {
      switch item.content {
      case .bytes(let bytes): total += Int64(try Self.packedCount(bytes, level))
      case .file(let path, let size):
        if ratios[path.string] == nil { ratios[path.string] = try ratio(of: try fileSystem.open(path), level) }
        total += Int64(Double(size) * (ratios[path.string] ?? 1))
      }
    }
    return total
  }

  private static func packedCount(_ bytes: [UInt8], _ level: Int) throws -> Int {
    var writer = try GzipWriter(level: level)
    return try writer.write(bytes).count + writer.finish().count
  }

  private func ratio(of file: ReadableFile, _ level: Int) throws -> Double {
    guard file.count > 0 else { return 0 }
    var (taken, packed) = (0, 0)
    let step = max(Int64(Self.sample), file.count / Self.samples)
    for offset in stride(from: 0, to: file.count, by: Int(step)) {
      let bytes = try file.bytes(at: offset, length: Self.sample)
      guard !bytes.isEmpty else { break }
      packed += try Self.packedCount(bytes, level)
      taken += bytes.count
    }
    return taken == 0 ? 0 : Double(packed) / Double(taken)
  }
}

/// A scrub concurrent with the single-threaded damage analysis, stopped on release.
final class BackgroundScrub: Sendable {
  private let state = State()

  private let folder: ExportFolder

  /// Starts a scrub; nil without a store or space for both.
  static func begin(
    _ work: ExportWork, _ evidence: ExportEvidence, in folder: ExportFolder
  ) throws(FileError) -> BackgroundScrub? {
    guard evidence.hasMain, try work.fileSystem.freeSpace(at: folder.path) > evidence.allBytes + evidence.bytes else {
      return nil
    }
    return BackgroundScrub(work, evidence, folder)
  }

  private init(_ work: ExportWork, _ evidence: ExportEvidence, _ folder: ExportFolder) {
    self.folder = folder
    let beside = ExportWork(
      source: work.source, options: work.options, home: work.home, place: work.place, surroundings: work.surroundings
    ) { [state, progress = work.progress] phase, done, total in
      switch state.mood {
      case .silent: true
      case .heard: progress(phase, done, total)
      case .stopped: false
      }
    }
    WorkThread.start { [state, path = folder.path] in
      state.end(Result { try ScrubbedStore(beside, evidence, in: path) })
    }
  }

  deinit { state.stop() }

  /// Waits for the result, reporting progress from now on.
  func value() throws -> ScrubbedStore { try state.wait().get() }

  private final class State: Sendable {
    enum Mood: Sendable { case silent, heard, stopped }

    private let ended = DispatchSemaphore(value: 0)
    private let content = Mutex<(mood: Mood, result: Result<ScrubbedStore, any Error>?)>((.silent, nil))

    var mood: Mood { content.withLock { $0.mood } }

    func end(_ result: Result<ScrubbedStore, any Error>) {
      content.withLock { $0.result = result }
      ended.signal()
    }

    func wait(_ mood: Mood = .heard) -> Result<ScrubbedStore, any Error> {
      content.withLock { $0.mood = mood }
      while true {
        if let result = content.withLock({ $0.result }) { return result }
        ended.wait()
      }
    }

    /// Stops the thread and waits for its end.
    func stop() { _ = wait(.stopped) }
  }
}
