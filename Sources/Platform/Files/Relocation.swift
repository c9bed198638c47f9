import Foundation
package import SystemPackage

/// The move of a whole store from one name to another, in steps that survive a kill between any two of them.
///
/// The parts get their new names first, the main file last; only then the old names go, the main file first. At every
/// moment the store is whole under its old name or whole under its new one. A journal beside the new name says what is
/// going on; a process that finds it later finishes the move or takes it back (`finish`).
///
/// Where another main file takes the store's name at the end (`replacement`), that name never stands for nothing: it is given
/// to the other file in the very step in which the old one loses it.
///
/// Nothing is copied where hard links do: the file's content never moves. Across file systems, and for a store that has
/// other names or is a symbolic link, the parts are copied, pushed to the disk and compared before the old ones go.
package struct Relocation: Sendable, Codable {
  /// One file of the move.
  package struct Step: Sendable, Codable, Hashable {
    package var part: StoreFileSet.Part
    package var source: PathText
    package var destination: PathText

    /// The file as it was when the move began.
    package var identity: FileIdentity
    package var bytes: Int64

    /// The copy, once there is one; nil where the new name is a link to the same file.
    package var copy: FileIdentity?

    /// The digest, once it has been taken.
    package var sha256: String?

    /// The bytes of the copy, where they are not those of the source: that is a symbolic link.
    package var copiedBytes: Int64?
  }

  /// The version of this journal's format.
  package var version = 1
  package var source: PathText
  package var destination: PathText

  /// The files, in the order in which they get their new names: the main file last.
  package var steps: [Step]

  /// The folders of external data to be made, relative to the set's, each as its components.
  package var folders: [PathText]

  /// What the owner of the move wants to know when it is finished later.
  package var note: String

  /// The file that gets the main file's old name in the step in which that goes; nil where the place is to be empty.
  ///
  /// It lies in the same file system. Only for a store without anything in a log or a journal: those would have to go after
  /// the old main file, and before the new one.
  package var replacement: PathText?

  /// Whether the large values keep their old names as well, since they may be those of another store in the folder.
  package var sharesValues: Bool?
}

extension Relocation {
  /// Plans the move of every part of a store that is there.
  package init(
    of source: StoreFileSet, to destination: StoreFileSet, note: String, in fileSystem: FileSystem
  ) throws(FileError) {
    var steps: [Step] = []
    var folders: [PathText] = []
    for member in try source.members(in: fileSystem).reversed() {
      let target = destination.path(of: member.part)
      if member.part == .externalData, member.status.kind != .directory {
        throw FileError(
          .notRegularFile, operation: "move the store", path: member.path,
          detail: "the store's large values are reached through a link, which cannot be moved with the store",
          hint: "Put the folder itself in the link's place, then run the same command again.")
      }
      if member.part == .externalData, member.status.kind == .directory {
        let content = try fileSystem.descendants(of: member.path)
        folders.append(PathText(target))
        folders += content.folders.map { PathText(target.appending($0)) }
        for file in content.files {
          steps.append(
            Step(
              part: .externalData, source: PathText(file.path), destination: PathText(target.appending(file.relative)),
              identity: file.status.identity, bytes: file.status.size))
        }
      } else {
        steps.append(
          Step(
            part: member.part, source: PathText(member.path), destination: PathText(target),
            identity: member.status.identity, bytes: member.status.size))
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
  /// The caller holds the folder's lock, and the store's own where another process could open it.
  ///
  /// - Parameters:
  ///   - journal: where the journal of the move is kept while it lasts; must not exist.
  ///   - takesDigests: whether the digest of each file is taken, which reads all of it; copies have one anyway.
  ///   - progress: called with the bytes done and the bytes in all; what it throws takes the move back.
  ///   - whenArrived: called when everything has its new name and digest and nothing has lost its old one; writes what
  ///     must be there from the moment the move is final.
  ///   - whenMoved: called when nothing has its old name any more, before the journal goes; tidies up.
  ///   - whenTakenBack: called when the move has failed and left nothing under the new name; removes what `whenArrived`
  ///     wrote.
  /// - Throws: what a step failed with, or what `whenArrived` threw; the store is then whole under its old name, unless
  ///   the old names were already going, when the move only has to be finished.
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
      // The first error is the one to report; what cannot be taken back now is taken back by `finish` later, for which
      // the journal stays.
      try? removeTraces(journal: journal, in: fileSystem, whenTakenBack)
      throw error
    }
    do throws(FileError) {
      try refuseOpenElsewhere()
      try depart(in: fileSystem)
    } catch {
      // Then the main file has its old name still, or again. The first error is the one to report.
      if error.kind == .inUse { try? removeTraces(journal: journal, in: fileSystem, whenTakenBack) }
      throw error
    }
    try whenMoved()
    try fileSystem.unlink(journal)
    try fileSystem.synchronizeDirectory(journal.folder)
  }

  private var totalBytes: Int64 { steps.reduce(0) { $0 + $1.bytes } }

  // MARK: The way there

  private mutating func arrive(
    journal: FilePath, in fileSystem: FileSystem, _ takesDigests: Bool, _ progress: (Int64, Int64) throws -> Void
  ) throws {
    for folder in folders { try fileSystem.makeDirectory(try folder.existing("make the folder")) }
    let isLinked = try arriveByLinking(in: fileSystem)
    if !isLinked { try arriveByCopying(journal: journal, in: fileSystem, progress) }
    let total = totalBytes
    var done: Int64 = 0
    for index in steps.indices where takesDigests {
      if steps[index].sha256 == nil {
        let file = try fileSystem.open(try steps[index].destination.existing("read the store"))
        steps[index].sha256 = try FileDigest(of: file) { try progress(done + $0, total) }.hexadecimal
      }
      done += steps[index].bytes
    }
    try adoptAccessOfFolders(in: fileSystem)
    try synchronizeFolders(of: \.destination, in: fileSystem)
  }

  /// The folders of external data may be read and written by those who may read and write the old ones.
  private func adoptAccessOfFolders(in fileSystem: FileSystem) throws(FileError) {
    guard !folders.isEmpty, let source = source.path, let destination = destination.path else { return }
    let old = StoreFileSet(main: source).path(of: .externalData)
    let new = StoreFileSet(main: destination).path(of: .externalData)
    for folder in folders.reversed() {
      guard var relative = folder.path, relative.removePrefix(new) else { continue }
      try fileSystem.adoptAccess(ofFolder: old.pushing(relative), to: try folder.existing("make the folder"))
    }
  }

  /// Gives every file its new name beside the old one; false where there are no hard links.
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
      steps[index].sha256 = try fileSystem.copy(source, to: unfinished) { try progress(done + $0, total) }.hexadecimal
      done += steps[index].bytes
      try fileSystem.adoptAccess(of: source, to: unfinished)
      guard let status = try fileSystem.status(of: unfinished) else {
        throw FileError(.changed, operation: "copy the store", path: unfinished)
      }
      steps[index].copy = status.identity
      if status.size != steps[index].bytes { steps[index].copiedBytes = status.size }
    }
    // From here on the journal knows which files are ours, so that another process's is never removed.
    try write(to: journal, replacing: true, in: fileSystem)
    for step in steps {
      let destination = try step.destination.existing("copy the store")
      try fileSystem.install(destination.hiddenSibling(suffix: ".arriving"), at: destination, replacing: false)
    }
  }

  private func canLink(in fileSystem: FileSystem) throws(FileError) -> Bool {
    for step in steps {
      let source = try step.source.existing("move the store")
      guard let status = try fileSystem.status(of: source, followingLinks: false) else {
        throw FileError(.changed, operation: "move the store", path: source)
      }
      if status.kind != .regular || status.linkCount != 1 { return false }
    }
    return true
  }

  // MARK: The point of no return

  private func depart(in fileSystem: FileSystem) throws(FileError) {
    if let replacement, try depart(leaving: replacement, in: fileSystem) { return }
    for (index, step) in steps.indices.reversed().map({ ($0, steps[$0]) }) {
      if step.part == .externalData, sharesValues == true { continue }
      let source = try step.source.existing("remove the old name")
      if let status = try fileSystem.status(of: source, followingLinks: false) {
        // Only the very file that was moved may lose its name; a copied one only while it is as it was copied.
        if step.isOf(status), step.copy == nil || status.size == step.bytes {
          try fileSystem.unlink(source)
        } else if step.part == .main, step.isOf(status) {
          throw FileError(.changed, operation: "remove the old name", path: source)
        }
      }
      guard index == steps.indices.last else { continue }
      // That the main file's old name is gone must be on the disk before any other old name goes.
      if try fileSystem.status(of: source.folder) != nil { try fileSystem.synchronizeDirectory(source.folder) }
      try putBackIfOpenElsewhere(step, source: source, in: fileSystem)
    }
    if let main = source.path, sharesValues != true {
      let support = StoreFileSet(main: main).path(of: .externalData)
      try removeFolders(below: support, in: fileSystem)
    }
    try synchronizeFolders(of: \.source, in: fileSystem)
  }

  /// Removes the old names, and gives the main file's to another file.
  ///
  /// An empty log, or its index, goes before, and the main file is the whole store then. Large values keep their old names
  /// as well: the other main file refers to them too.
  ///
  /// - Returns: false where there are no links, by which the old main file is kept within reach; nothing but the empty log is
  ///   gone then.
  private func depart(leaving replacement: PathText, in fileSystem: FileSystem) throws(FileError) -> Bool {
    guard let main = steps.last, main.part == .main else { return false }
    let place = try main.source.existing("remove the old name")
    for step in steps where step.part != .main && step.part != .externalData {
      let source = try step.source.existing("remove the old name")
      if let status = try fileSystem.status(of: source, followingLinks: false), step.isOf(status) {
        try fileSystem.unlink(source)
      }
    }
    try fileSystem.synchronizeDirectory(place.folder)
    if let status = try fileSystem.status(of: place, followingLinks: false), main.isOf(status) {
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

  /// Gives another file the name of the main file, and the main file that name back where another process opened it in the
  /// last moment.
  private func exchange(
    _ place: FilePath, for other: FilePath, in fileSystem: FileSystem
  ) throws(FileError) -> Bool {
    let kept = Self.kept(place)
    try fileSystem.unlink(kept)
    do throws(FileError) {
      try fileSystem.link(place, to: kept)
    } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      return false
    }
    try fileSystem.rename(other, to: place)
    try fileSystem.synchronizeDirectory(place.folder)
    do throws(FileError) {
      try refuseOpenElsewhere()
    } catch {
      try fileSystem.link(place, to: other)
      try fileSystem.rename(kept, to: place)
      try fileSystem.synchronizeDirectory(place.folder)
      throw error
    }
    return true
  }

  /// The name by which the old main file can be given its own back while another one gets it.
  private static func kept(_ place: FilePath) -> FilePath { place.hiddenSibling(suffix: ".leaving") }

  // MARK: The way back

  private func removeTraces(
    journal: FilePath, in fileSystem: FileSystem, _ whenTakenBack: () throws(FileError) -> Void
  ) throws(FileError) {
    try takeBack(in: fileSystem)
    try whenTakenBack()
    try fileSystem.unlink(journal)
  }

  /// Removes the new names, after giving back every old one that is missing.
  ///
  /// The old names go last, and the main file's first of them; but a disk that lost its power may have kept the removal of
  /// one and not of another.
  private func takeBack(in fileSystem: FileSystem, keepingFolders: Bool = false) throws(FileError) {
    for step in steps {
      let source = try step.source.existing("take the move back")
      let destination = try step.destination.existing("take the move back")
      guard try fileSystem.status(of: source, followingLinks: false) == nil,
        let status = try fileSystem.status(of: destination, followingLinks: false), step.isCopy(status)
      else { continue }
      try fileSystem.makeDirectory(source.folder)
      try giveBack(destination, to: source, in: fileSystem)
      try fileSystem.synchronizeDirectory(source.folder)
    }
    for step in steps.reversed() {
      let destination = try step.destination.existing("take the move back")
      let status = try fileSystem.status(of: destination, followingLinks: false)
      if let status, step.isCopy(status) { try fileSystem.unlink(destination) }
      try fileSystem.unlink(destination.hiddenSibling(suffix: ".arriving"))
    }
    if replacement != nil, let main = source.path { try fileSystem.unlink(Self.kept(main)) }
    if !keepingFolders, let main = destination.path {
      try removeFolders(below: StoreFileSet(main: main).path(of: .externalData), in: fileSystem)
    }
  }

  private func giveBack(_ file: FilePath, to source: FilePath, in fileSystem: FileSystem) throws(FileError) {
    do throws(FileError) {
      try fileSystem.link(file, to: source)
    } catch {
      guard error.meansLinksAreUnsupported else { throw error }
      do {
        _ = try fileSystem.copy(file, to: source)
        try fileSystem.adoptAccess(of: file, to: source)
      } catch {
        throw FileError(.changed, operation: "take the move back", path: source)
      }
    }
  }

  /// Refuses to go on where another process has opened the store since the move began: it would write to the old names.
  private func refuseOpenElsewhere() throws(FileError) {
    for step in steps where step.part == .main || step.part == .sharedMemory {
      guard let process = OpenFiles.processKeepingOpen(step.identity) else { continue }
      throw FileError(
        .inUse, operation: "move the store", path: step.source.path,
        detail: "\(process.description) has opened it meanwhile", hint: "Quit it, then run the same command again.")
    }
  }

  /// Gives the main file its old name back where another process opened it in the last moment before it was gone.
  private func putBackIfOpenElsewhere(
    _ step: Step, source: FilePath, in fileSystem: FileSystem
  ) throws(FileError) {
    do throws(FileError) {
      try refuseOpenElsewhere()
    } catch {
      let destination = try step.destination.existing("move the store")
      if try fileSystem.status(of: source, followingLinks: false) == nil {
        try giveBack(destination, to: source, in: fileSystem)
        try fileSystem.synchronizeDirectory(source.folder)
      }
      throw error
    }
  }

  /// Removes the folders of external data that are empty now; one that something was put into stays.
  private func removeFolders(below support: FilePath, in fileSystem: FileSystem) throws(FileError) {
    guard !folders.isEmpty, try fileSystem.status(of: support, followingLinks: false)?.kind == .directory else {
      return
    }
    let content = try fileSystem.descendants(of: support)
    guard content.files.isEmpty else { return }
    for folder in content.folders.sorted(by: { $0.count > $1.count }) {
      try fileSystem.removeDirectory(support.appending(folder))
    }
    try fileSystem.removeDirectory(support)
  }

  // MARK: After an interruption

  /// How an interrupted move ended.
  package enum Outcome: Sendable, Hashable {
    /// The store is under its new name.
    case moved

    /// The store is under its old name, as if nothing had been.
    case takenBack
  }

  /// Finishes a move that was interrupted, or takes it back; safe to be interrupted itself.
  ///
  /// A journal that is about other files, because its folder was copied or restored from elsewhere, is set aside as
  /// `….stale` where the store is in its old place; nothing is touched then.
  ///
  /// - Parameter moved: folders that have another path than they had when the journal was written.
  /// - Returns: nil where nothing had begun, or the journal was set aside.
  /// - Throws: `changed-meanwhile` where the store is whole under neither name, because another process changed it.
  package static func finish(
    journal: FilePath, in fileSystem: FileSystem, moved: [(from: FilePath, to: FilePath)] = []
  ) throws -> (relocation: Relocation, outcome: Outcome)? {
    guard let written = try Relocation(journal: journal, in: fileSystem) else {
      // Killed while the journal was being written: nothing else had begun.
      try fileSystem.unlink(journal)
      return nil
    }
    let relocation = written.rooted(at: journal.folder).following(moved)
    guard let outcome = try relocation.finish(in: fileSystem) else {
      try fileSystem.rename(journal, to: journal.sibling(suffix: ".stale"))
      return nil
    }
    try fileSystem.unlink(journal)
    try fileSystem.synchronizeDirectory(journal.folder)
    return (relocation, outcome)
  }

  private func finish(in fileSystem: FileSystem) throws(FileError) -> Outcome? {
    // The last step is the main file, and the first to lose its old name: while it has it, no old name is gone.
    guard let main = steps.last else { return .takenBack }
    let source = try main.source.existing("finish the move")
    let atOldPlace = try fileSystem.status(of: source, followingLinks: false)
    if let atOldPlace, main.isOf(atOldPlace) {
      try takeBack(in: fileSystem)
      return .takenBack
    }
    for step in steps {
      let destination = try step.destination.existing("finish the move")
      if let status = try fileSystem.status(of: destination, followingLinks: false), step.isCopy(status) { continue }
      if atOldPlace != nil { return nil }
      throw FileError(
        .changed, operation: "finish the move", path: destination,
        detail: "an interrupted move cannot be finished, because this file is missing or another one has its name",
        hint: "Look at the folder by hand; the journal of the move is beside it and names every file.")
    }
    try depart(in: fileSystem)
    return .moved
  }

  /// The same move where its folders are now: they may have been renamed since the journal was written.
  ///
  /// The journal of a quarantine or a release lies in the quarantine folder, which lies beside the store; one side of such a
  /// move is always in there. Other moves stay as they are.
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

  /// The same move where folders have got other paths since.
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

  private func synchronizeFolders(
    of side: KeyPath<Step, PathText>, in fileSystem: FileSystem
  ) throws(FileError) {
    var done: Set<FilePath> = []
    for step in steps {
      let folder = try step[keyPath: side].existing("write the folder to the disk").folder
      guard done.insert(folder).inserted else { continue }
      if try fileSystem.status(of: folder) != nil { try fileSystem.synchronizeDirectory(folder) }
    }
  }
}

extension Relocation.Step {
  /// Whether a file is the one that is being moved; the number of the device may change from one start to the next.
  fileprivate func isOf(_ status: FileStatus) -> Bool { status.identity.inode == identity.inode }

  /// Whether a file is the one that has the new name, or is to have it.
  fileprivate func isCopy(_ status: FileStatus) -> Bool { status.identity.inode == (copy ?? identity).inode }
}

extension PathText {
  /// The path, or an error where the text is none.
  fileprivate func existing(_ operation: String) throws(FileError) -> FilePath {
    guard let path else {
      throw FileError(.other, operation: operation, path: nil, detail: "a path in the journal cannot be read")
    }
    return path
  }
}

extension Relocation {
  /// Reads a journal; nil where it is not whole.
  package init?(journal: FilePath, in fileSystem: FileSystem) throws(FileError) {
    let bytes = try fileSystem.contents(of: journal, limit: 1 << 28)
    do {
      self = try JSONDecoder().decode(Relocation.self, from: Data(bytes))
    } catch {
      return nil
    }
  }

  /// Writes the journal, whole or not at all.
  func write(to journal: FilePath, replacing: Bool, in fileSystem: FileSystem) throws {
    let bytes = try JSON.bytes(of: self, .line, to: "move the store", at: journal)
    try fileSystem.writeAtomically(bytes, to: journal, replacing: replacing)
  }
}
