import Foundation
package import SystemPackage

/// The move of a whole store to another name, in steps that survive a kill between any two.
///
/// The parts get their new names first, the main file last; then the old names are removed, the main file's first. At
/// every moment the store is complete under one name. A journal beside the new name lets a later process finish the
/// move or revert it (`finish`).
///
/// With a `replacement` the old name never vanishes: one step gives it to the other main file.
///
/// Hard links avoid copying. Across file systems, and for stores with other links or behind a symbolic link, the parts
/// are copied, synchronized and verified before the old ones go.
package struct Relocation: Sendable, Codable {
  package struct Step: Sendable, Codable, Hashable {
    package var part: StoreFileSet.Part
    package var source: PathText
    package var destination: PathText

    var identity: FileIdentity
    package var bytes: Int64

    /// The copy's identity; nil for a link.
    var copy: FileIdentity?

    package var sha256: String?

    /// The copy's size, if the source is a symbolic link.
    package var copiedBytes: Int64?
  }

  var version = 1
  package var source: PathText
  package var destination: PathText

  /// The files in the order of their new names: the main file last.
  package var steps: [Step]

  /// The folders of external data to make, relative to the set's.
  var folders: [PathText]

  /// The caller's note for finishing the move later.
  package var note: String

  /// The file that takes over the main file's old name in one step; nil to leave the name free.
  ///
  /// It lies in the same file system. Only for stores without content in a log or journal: those would have to go
  /// between the two.
  package var replacement: PathText?

  /// Whether the external data keep their old names too, because another store may share them.
  var sharesValues: Bool?
}

extension Relocation {
  package init(
    of source: StoreFileSet, to destination: StoreFileSet, note: String, in fileSystem: FileSystem
  ) throws(FileError) {
    var steps: [Step] = []
    var folders: [PathText] = []
    func add(_ part: StoreFileSet.Part, _ path: FilePath, _ status: FileStatus, to target: FilePath) {
      steps.append(
        Step(
          part: part, source: PathText(path), destination: PathText(target), identity: status.identity,
          bytes: status.size))
    }
    for member in try source.members(in: fileSystem).reversed() {
      let target = destination.path(of: member.part)
      if member.part == .externalData {
        let strange = try source.largeValues(in: fileSystem).files.first { $0.status.kind != .regular }?.path
        if let strange = member.status.kind == .directory ? strange : member.path {
          throw StoreFileSet.unmovable(strange, "move the store")
        }
        let content = try fileSystem.descendants(of: member.path)
        folders.append(PathText(target))
        folders += content.folders.map { PathText(target.appending($0)) }
        for file in content.files { add(.externalData, file.path, file.status, to: target.appending(file.relative)) }
      } else {
        add(member.part, member.path, member.status, to: target)
      }
    }
    self.init(
      source: PathText(source.main), destination: PathText(destination.main), steps: steps, folders: folders, note: note
    )
    if steps.contains(where: { $0.part == .externalData }), try source.sharesExternalData(in: fileSystem) {
      sharesValues = true
    }
  }

  /// Moves the store.
  ///
  /// The caller holds the folder's lock, and the store's own if another process could open it.
  ///
  /// - Parameters:
  ///   - journal: the journal's path; must not exist.
  ///   - takesDigests: whether to digest each file by reading it; copies are digested anyway.
  ///   - progress: called with bytes done and total; an error reverts the move.
  ///   - whenArrived: called between the last new name and the first removal; writes files that a final move needs.
  ///   - whenMoved: called after the last old name has gone, before the journal goes; cleans up.
  ///   - whenTakenBack: called after the move was reverted; removes the files of `whenArrived`.
  /// - Throws: the step's error or that of `whenArrived`; the store is then complete under its old name, unless old
  ///   names were going: then the move has to be finished.
  package mutating func run(
    journal: FilePath, in fileSystem: FileSystem, takesDigests: Bool = true,
    progress: (Int64, Int64) throws -> Void, whenArrived: (Relocation) throws -> Void,
    whenMoved: () throws(FileError) -> Void, whenTakenBack: () throws(FileError) -> Void
  ) throws {
    try write(to: journal, replacing: false, in: fileSystem)
    do {
      try arrive(journal: journal, in: fileSystem, takesDigests, progress)
      try whenArrived(self)
    } catch {
      // Report the first error; `finish` reverts the rest later, by the journal.
      try? removeTraces(journal: journal, in: fileSystem, whenTakenBack)
      throw error
    }
    do throws(FileError) {
      try refuseOpenElsewhere()
      try depart(in: fileSystem)
    } catch {
      // The main file has its old name. Report the first error.
      if error.kind == .inUse { try? removeTraces(journal: journal, in: fileSystem, whenTakenBack) }
      throw error
    }
    try whenMoved()
    try fileSystem.unlink(journal)
    try fileSystem.synchronizeDirectory(journal.folder)
  }

  private var totalBytes: Int64 { steps.reduce(0) { $0 + $1.bytes } }

  // MARK: Moving

  private mutating func arrive(
    journal: FilePath, in fileSystem: FileSystem, _ takesDigests: Bool, _ progress: (Int64, Int64) throws -> Void
  ) throws {
    for folder in folders { try fileSystem.makeDirectory(try folder.existing("make the folder")) }
    if try !arriveByLinking(in: fileSystem) { try arriveByCopying(journal: journal, in: fileSystem, progress) }
    let total = totalBytes
    var done: Int64 = 0
    for index in steps.indices where takesDigests {
      if steps[index].sha256 == nil {
        let file = try fileSystem.open(try steps[index].destination.existing("read the store"))
        steps[index].sha256 = try KeptFileDigest(of: file) { try progress(done + $0, total) }.text
      }
      done += steps[index].bytes
    }
    try adoptAccessOfFolders(in: fileSystem)
    try synchronizeFolders(of: \.destination, in: fileSystem)
  }

  private func adoptAccessOfFolders(in fileSystem: FileSystem) throws(FileError) {
    guard !folders.isEmpty, let source = source.path, let destination = destination.path else { return }
    let old = StoreFileSet(main: source).path(of: .externalData)
    let new = StoreFileSet(main: destination).path(of: .externalData)
    for folder in folders.reversed() {
      guard var relative = folder.path, relative.removePrefix(new) else { continue }
      try fileSystem.adoptAccess(ofFolder: old.pushing(relative), to: try folder.existing("make the folder"))
    }
  }

  /// Links every file to its new name; false without hard links.
  private func arriveByLinking(in fileSystem: FileSystem) throws(FileError) -> Bool {
    guard try canLink(in: fileSystem) else { return false }
    do throws(FileError) {
      for step in steps {
        let source = try step.source.existing("move the store")
        try fileSystem.link(source, to: try step.destination.existing("move the store"))
      }
      return true
    } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      try takeBack(in: fileSystem, keepingFolders: true)
      return false
    }
  }

  private mutating func arriveByCopying(
    journal: FilePath, in fileSystem: FileSystem, _ progress: (Int64, Int64) throws -> Void
  ) throws {
    let total = totalBytes
    var done: Int64 = 0
    for index in steps.indices {
      let source = try steps[index].source.existing("copy the store")
      let unfinished = try steps[index].destination.existing("copy the store").hiddenSibling(suffix: ".arriving")
      steps[index].sha256 = try fileSystem.copy(source, to: unfinished) { try progress(done + $0, total) }.text
      done += steps[index].bytes
      try fileSystem.adoptAccess(of: source, to: unfinished)
      guard let status = try fileSystem.status(of: unfinished) else {
        throw FileError(.changed, operation: "copy the store", path: unfinished)
      }
      steps[index].copy = status.identity
      if status.size != steps[index].bytes { steps[index].copiedBytes = status.size }
    }
    // From here on the journal identifies our files, so that another process's is never removed.
    try write(to: journal, replacing: true, in: fileSystem)
    for step in steps {
      let destination = try step.destination.existing("copy the store")
      try fileSystem.install(destination.hiddenSibling(suffix: ".arriving"), at: destination, replacing: false)
    }
  }

  private func canLink(in fileSystem: FileSystem) throws(FileError) -> Bool {
    for step in steps {
      let source = try step.source.existing("move the store")
      guard let status = try fileSystem.entry(at: source) else {
        throw FileError(.changed, operation: "move the store", path: source)
      }
      if status.kind != .regular || status.linkCount != 1 { return false }
    }
    return true
  }

  // MARK: Removing old names

  private func depart(in fileSystem: FileSystem) throws(FileError) {
    if let replacement, try depart(leaving: replacement, in: fileSystem) { return }
    for (index, step) in steps.indices.reversed().map({ ($0, steps[$0]) }) {
      if step.part == .externalData, sharesValues == true { continue }
      let source = try step.source.existing("remove the old name")
      if let status = try fileSystem.entry(at: source) {
        // Remove only the moved file's name, and a copied one's only while unchanged.
        if step.isOf(status), step.copy == nil || status.size == step.bytes {
          try fileSystem.unlink(source)
        } else if step.part == .main, step.isOf(status) {
          throw FileError(.changed, operation: "remove the old name", path: source)
        }
      }
      guard index == steps.indices.last else { continue }
      // The removal of the main file's old name must be durable before the others go.
      if try fileSystem.status(of: source.folder) != nil { try fileSystem.synchronizeDirectory(source.folder) }
      try putBackIfOpenElsewhere(step, source: source, in: fileSystem)
    }
    if let main = source.path, sharesValues != true {
      try removeFolders(below: StoreFileSet(main: main).path(of: .externalData), in: fileSystem)
    }
    try synchronizeFolders(of: \.source, in: fileSystem)
  }

  /// Removes the old names and gives the main file's to another file.
  ///
  /// An empty log and its index go first; the main file is the whole store then. External data keep their names: the
  /// other main file refers to them.
  ///
  /// - Returns: false without hard links, which keep the old main file within reach; only the empty log is gone then.
  private func depart(leaving replacement: PathText, in fileSystem: FileSystem) throws(FileError) -> Bool {
    guard let main = steps.last, main.part == .main else { return false }
    let place = try main.source.existing("remove the old name")
    for step in steps where step.part != .main && step.part != .externalData {
      let source = try step.source.existing("remove the old name")
      if let status = try fileSystem.entry(at: source), step.isOf(status) { try fileSystem.unlink(source) }
    }
    try fileSystem.synchronizeDirectory(place.folder)
    if let status = try fileSystem.entry(at: place), main.isOf(status) {
      guard main.copy == nil || status.size == main.bytes else {
        throw FileError(.changed, operation: "remove the old name", path: place)
      }
      let other = try replacement.existing("put the new store into its place")
      guard try exchange(place, for: other, in: fileSystem) else { return false }
    }
    try fileSystem.unlink(Self.kept(place))
    try synchronizeFolders(of: \.source, in: fileSystem)
    return true
  }

  /// Gives another file the main file's name, and reverts it if another process opened the store at the last moment.
  private func exchange(_ place: FilePath, for other: FilePath, in fileSystem: FileSystem) throws(FileError) -> Bool {
    let kept = Self.kept(place)
    try fileSystem.unlink(kept)
    do throws(FileError) { try fileSystem.link(place, to: kept) } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      return false
    }
    try fileSystem.rename(other, to: place)
    try fileSystem.synchronizeDirectory(place.folder)
    do throws(FileError) { try refuseOpenElsewhere() } catch {
      try fileSystem.link(place, to: other)
      try fileSystem.rename(kept, to: place)
      try fileSystem.synchronizeDirectory(place.folder)
      throw error
    }
    return true
  }

  /// The hidden link that preserves the old main file during an exchange.
  private static func kept(_ place: FilePath) -> FilePath { place.hiddenSibling(suffix: ".leaving") }

  // MARK: Reverting

  private func removeTraces(
    journal: FilePath, in fileSystem: FileSystem, _ whenTakenBack: () throws(FileError) -> Void
  ) throws(FileError) {
    try takeBack(in: fileSystem)
    try whenTakenBack()
    try fileSystem.unlink(journal)
  }

  /// Restores missing old names, then removes the new ones.
  ///
  /// The main file's old name goes first, but after a power loss the removals may be partial.
  private func takeBack(in fileSystem: FileSystem, keepingFolders: Bool = false) throws(FileError) {
    for step in steps {
      let source = try step.source.existing("take the move back")
      let destination = try step.destination.existing("take the move back")
      guard try !fileSystem.hasEntry(at: source),
        let status = try fileSystem.entry(at: destination), step.isCopy(status)
      else { continue }
      try fileSystem.makeDirectory(source.folder)
      try giveBack(destination, to: source, in: fileSystem)
      try fileSystem.synchronizeDirectory(source.folder)
    }
    for step in steps.reversed() {
      let destination = try step.destination.existing("take the move back")
      let status = try fileSystem.entry(at: destination)
      if let status, step.isCopy(status) { try fileSystem.unlink(destination) }
      try fileSystem.unlink(destination.hiddenSibling(suffix: ".arriving"))
    }
    if replacement != nil, let main = source.path { try fileSystem.unlink(Self.kept(main)) }
    if !keepingFolders, let main = destination.path {
      try removeFolders(below: StoreFileSet(main: main).path(of: .externalData), in: fileSystem)
    }
  }

  private func giveBack(_ file: FilePath, to source: FilePath, in fileSystem: FileSystem) throws(FileError) {
    do throws(FileError) { try fileSystem.link(file, to: source) } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      do {
        _ = try fileSystem.copy(file, to: source)
        try fileSystem.adoptAccess(of: file, to: source)
      } catch { throw FileError(.changed, operation: "take the move back", path: source) }
    }
  }

  /// Throws if another process has opened the store since the start: it would write to the old names.
  private func refuseOpenElsewhere() throws(FileError) {
    for step in steps where step.part == .main || step.part == .sharedMemory {
      guard let process = OpenFiles.processKeepingOpen(step.identity) else { continue }
      throw FileError(
        .inUse, operation: "move the store", path: step.source.path,
        detail: "\(process.description) has opened it meanwhile", hint: "Quit it, then run the same command again.")
    }
  }

  /// Restores the main file's old name if another process opened it at the last moment.
  private func putBackIfOpenElsewhere(_ step: Step, source: FilePath, in fileSystem: FileSystem) throws(FileError) {
    do throws(FileError) { try refuseOpenElsewhere() } catch {
      let destination = try step.destination.existing("move the store")
      if try !fileSystem.hasEntry(at: source) {
        try giveBack(destination, to: source, in: fileSystem)
        try fileSystem.synchronizeDirectory(source.folder)
      }
      throw error
    }
  }

  private func removeFolders(below support: FilePath, in fileSystem: FileSystem) throws(FileError) {
    guard !folders.isEmpty, try fileSystem.entry(at: support)?.kind == .directory else { return }
    let content = try fileSystem.descendants(of: support)
    guard content.files.isEmpty else { return }
    for folder in content.folders.sorted(by: { $0.count > $1.count }) {
      try fileSystem.removeDirectory(support.appending(folder))
    }
    try fileSystem.removeDirectory(support)
  }

  // MARK: Recovery

  package enum Outcome: Sendable, Hashable { case moved, takenBack }

  /// Finishes or reverts an interrupted move; safe to interrupt.
  ///
  /// A journal about other files, because its folder was copied or restored, is renamed `….stale` if the store is in
  /// its old place; no other file is touched.
  ///
  /// - Parameter moved: folders renamed since the journal was written.
  /// - Returns: nil if no step was taken, or the journal was renamed.
  /// - Throws: `changed-meanwhile` if the store is complete under neither name, because another process changed it.
  package static func finishInterrupted(
    journal: FilePath, in fileSystem: FileSystem, moved: [(from: FilePath, to: FilePath)] = []
  ) throws -> (relocation: Relocation, outcome: Outcome)? {
    guard let written = try Relocation(journal: journal, in: fileSystem) else {
      // Killed while writing the journal, before any step.
      try fileSystem.unlink(journal)
      return nil
    }
    let relocation = written.rooted(at: journal.folder).following(moved)
    guard let outcome = try relocation.finishInterrupted(in: fileSystem) else {
      try fileSystem.rename(journal, to: journal.sibling(suffix: ".stale"))
      return nil
    }
    try fileSystem.unlink(journal)
    try fileSystem.synchronizeDirectory(journal.folder)
    return (relocation, outcome)
  }

  private func finishInterrupted(in fileSystem: FileSystem) throws(FileError) -> Outcome? {
    // The main file is last to arrive and first to depart: while it has its old name, all exist.
    guard let main = steps.last else { return .takenBack }
    let atOldPlace = try fileSystem.entry(at: main.source.existing("finish the move"))
    if let atOldPlace, main.isOf(atOldPlace) {
      try takeBack(in: fileSystem)
      return .takenBack
    }
    for step in steps {
      let destination = try step.destination.existing("finish the move")
      if let status = try fileSystem.entry(at: destination), step.isCopy(status) { continue }
      if atOldPlace != nil { return nil }
      throw FileError(
        .changed, operation: "finish the move", path: destination,
        detail: "an interrupted move cannot be finished, because this file is missing or another one has its name",
        hint: "Look at the folder by hand; the journal of the move is beside it and names every file.")
    }
    try depart(in: fileSystem)
    return .moved
  }

  /// Rebases the move on its folders' present paths.
  ///
  /// The journal of a quarantine or release lies in the quarantine folder, beside the store, which holds one side of
  /// the move. Other moves stay.
  private func rooted(at folder: FilePath) -> Relocation {
    let ends = ["quarantine": destination, "release": source]
    guard let inside = ends[note]?.path?.folder, inside != folder else { return self }
    func moved(_ text: PathText) -> PathText {
      guard var path = text.path else { return text }
      if path.removePrefix(inside) { return PathText(folder.pushing(path)) }
      if path.removePrefix(inside.folder) { return PathText(folder.folder.pushing(path)) }
      return text
    }
    return withPaths(moved)
  }

  private func following(_ folders: [(from: FilePath, to: FilePath)]) -> Relocation {
    withPaths { text in
      for folder in folders {
        if var path = text.path, path.removePrefix(folder.from) { return PathText(folder.to.pushing(path)) }
      }
      return text
    }
  }

  private func withPaths(_ moved: (PathText) -> PathText) -> Relocation {
    var result = self
    result.source = moved(source)
    result.destination = moved(destination)
    result.folders = folders.map(moved)
    result.replacement = replacement.map(moved)
    for index in steps.indices {
      result.steps[index].source = moved(steps[index].source)
      result.steps[index].destination = moved(steps[index].destination)
    }
    return result
  }

  private func synchronizeFolders(of side: KeyPath<Step, PathText>, in fileSystem: FileSystem) throws(FileError) {
    var done: Set<FilePath> = []
    for step in steps {
      let folder = try step[keyPath: side].existing("write the folder to the disk").folder
      guard done.insert(folder).inserted else { continue }
      if try fileSystem.status(of: folder) != nil { try fileSystem.synchronizeDirectory(folder) }
    }
  }

  /// Reads a journal; nil if it is incomplete.
  init?(journal: FilePath, in fileSystem: FileSystem) throws(FileError) {
    let bytes = try fileSystem.contents(of: journal, limit: 1 << 28)
    do { self = try JSONDecoder().decode(Relocation.self, from: Data(bytes)) } catch { return nil }
  }

  func write(to journal: FilePath, replacing: Bool, in fileSystem: FileSystem) throws {
    let bytes = try JSON.bytes(of: self, .line, to: "move the store", at: journal)
    try fileSystem.writeAtomically(bytes, to: journal, replacing: replacing)
  }
}

extension Relocation.Step {
  /// Whether a file is the moved one; device numbers may change at a reboot.
  fileprivate func isOf(_ status: FileStatus) -> Bool { status.identity.inode == identity.inode }

  /// Whether a file has, or is to have, the new name.
  fileprivate func isCopy(_ status: FileStatus) -> Bool { status.identity.inode == (copy ?? identity).inode }
}

extension PathText {
  fileprivate func existing(_ operation: String) throws(FileError) -> FilePath {
    guard let path else {
      throw FileError(.other, operation: operation, path: nil, detail: "a path in the journal cannot be read")
    }
    return path
  }
}
