internal import PageRecovery
internal import StoreFiles
internal import SystemPackage

extension StoreReconstruction {
  /// Puts the result into its place: what was set aside, the large values, the store itself last.
  func install(
    _ result: FilePath, _ folder: RebuildFolder, _ target: SalvageTarget, _ aside: SalvageTarget,
    _ report: SalvageReport
  ) throws(SalvageError) {
    let external = StoreFileSet(main: target.path).path(of: .externalData)
    do throws(FileError) {
      let hasAside = report.rebuild?.setAsideFile != nil
      if hasAside {
        try fileSystem.synchronizeFile(folder.aside)
      } else {
        try fileSystem.unlink(folder.aside)
      }
      let hasExternal = report.isCoreData ? try copyExternalData(to: folder.external) : false
      try fileSystem.synchronizeFile(result)
      try folder.noteInstallation()
      if hasAside { try fileSystem.install(folder.aside, at: aside.path, replacing: false) }
      if hasExternal {
        try fileSystem.rename(folder.external, to: external)
        try fileSystem.synchronizeDirectory(external.folder)
      }
      try fileSystem.install(result, at: target.path, replacing: false)
    } catch {
      // The error that led here is the one to report; what cannot be taken back now is by the next run.
      try? folder.takeBack(main: target.path, aside: aside.path, external: external)
      throw SalvageError(error)
    }
  }

  /// Copies the files of large values; they are named by the records, and stay as they are.
  private func copyExternalData(to target: FilePath) throws(FileError) -> Bool {
    let source = evidence.files.path(of: .externalData)
    guard try fileSystem.status(of: source, followingLinks: false)?.kind == .directory else { return false }
    let content = try fileSystem.descendants(of: source)
    try fileSystem.makeDirectory(target)
    for folder in content.folders { try fileSystem.makeDirectory(target.appending(folder)) }
    for file in content.files where file.status.kind == .regular {
      do {
        _ = try fileSystem.copy(file.path, to: target.appending(file.relative))
      } catch {
        throw error as? FileError
          ?? FileError(.other, operation: "copy the large values", path: file.path)
      }
    }
    for folder in content.folders { try fileSystem.synchronizeDirectory(target.appending(folder)) }
    try fileSystem.synchronizeDirectory(target)
    return true
  }

  /// Stops where the disk is too full, and says how much is needed.
  func requireSpace(at folder: FilePath) throws(FileError) {
    let needed = try SalvageNeeds(of: evidence.files, in: fileSystem).workingBytes(model, migrates: options.migrates)
    let free = try fileSystem.freeSpace(at: folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "salvage the store", path: folder,
      detail: "the salvage needs \(needed) bytes and \(free) are free",
      hint: "Free \(needed - free) bytes, then try again; the store is as it was.",
      details: .init(neededBytes: needed))
  }
}
