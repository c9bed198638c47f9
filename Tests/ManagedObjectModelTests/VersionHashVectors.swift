/// Entities of real stores with the version hash that Core Data computed for them, one per feature of the algorithm.
///
/// `entity | feature | name | abstract | hash modifier | uniqueness constraints`, then lines with the hash of the parent,
/// the hash, and every property, inherited ones included: `kind | name | flags | hash modifier | …`, where attributes go
/// on with type, storage flags and derivation, relationships with destination, inverse, maximum, minimum and order.
let versionHashVectors = #"""
  entity | plain | BasicEntity | - | - | -
    parent | -
    hash | b26d7c6c22b533d5a7015b6a77545c1bb29ee7bc91db1aead8c00d80df62c92c
    Attribute | v1_0_0_name | optional | - | 700 | - | -
  entity | to1 | CDCartItemModifier | - | - | -
    parent | -
    hash | cfd90c17bc7e55efd56b3715d73ec9f571325a3b078522becaaae18273f1cf9a
    Attribute | id | - | - | 700 | - | -
    Relationship | item | optional | - | CDCartItem | - | 1 | 0 | -
    Attribute | name | - | - | 700 | - | -
    Attribute | priceDeltaAmount | - | - | 400 | - | -
    Attribute | priceDeltaCurrencyCode | - | - | 700 | - | -
  entity | noinverse | CDCartItemModifier | - | - | -
    parent | -
    hash | cfd90c17bc7e55efd56b3715d73ec9f571325a3b078522becaaae18273f1cf9a
    Attribute | id | - | - | 700 | - | -
    Relationship | item | optional | - | CDCartItem | - | 1 | 0 | -
    Attribute | name | - | - | 700 | - | -
    Attribute | priceDeltaAmount | - | - | 400 | - | -
    Attribute | priceDeltaCurrencyCode | - | - | 700 | - | -
  entity | unique | CartItemModifierModel | - | - | id
    parent | -
    hash | 2d7d9cce19ca420473c1566899a477fbdc6890cfa04d6e9fec686b201402817a
    Attribute | id | - | - | 700 | - | -
    Attribute | name | - | - | 700 | - | -
    Attribute | priceDeltaAmount | - | - | 400 | - | -
    Attribute | priceDeltaCurrencyCode | - | - | 700 | - | -
  entity | ordered | Author | - | - | -
    parent | -
    hash | 22231d0d3ec4b53e59d05214101ff6e8643804d9f0175e352033899d7bb29afc
    Attribute | biography | optional | - | 700 | - | -
    Attribute | createdAt | optional | - | 900 | - | -
    Relationship | createdEntries | optional | - | Post | authors | 0 | 0 | ordered
    Attribute | id | - | - | 700 | - | -
    Attribute | localeCode | optional | - | 700 | - | -
    Attribute | name | optional | - | 700 | - | -
    Relationship | profilePhoto | optional | - | Asset | profilePhoto_1kUEViTN4EmGiEaaeC6ouY_Inverse | 1 | 0 | -
    Attribute | updatedAt | optional | - | 900 | - | -
    Attribute | website | optional | - | 700 | - | -
  entity | sub | SportCar | - | - | -
    parent | 9e555529072158220d1bacd2f80a3dad4919f74a32aa8be9ee22a6a7b4126c8f
    hash | 514ec1907a568299f9fb6851106516136f0755f45fa53a823a0e4d44013d5313
    Attribute | color | optional | - | 1800 | - | -
    Attribute | currentDrivingSpeed | optional,transient | - | 300 | - | -
    Attribute | maker | optional | - | 700 | - | -
    Attribute | markedForDeletionAsOf | optional | - | 900 | - | -
    Attribute | model | optional | - | 700 | - | -
    Attribute | numberPlate | - | - | 700 | - | -
    Relationship | owner | optional | - | Person | cars | 1 | 0 | -
  entity | preserve | Person | - | - | firstName,lastName
    parent | -
    hash | 164268551b45108ae763aa2ba61ff32d32d32323850987c3e21607c8da44b72b
    Relationship | cars | optional | - | Car | owner | 0 | 0 | -
    Attribute | firstName | optional | - | 700 | - | -
    Attribute | id | - | - | 1100 | preserveOnDeletion | -
    Attribute | isDriving | transient | - | 800 | - | -
    Attribute | lastName | optional | - | 700 | - | -
    Attribute | updatedAt | - | - | 900 | - | -
  entity | derived | GraphicNovel | - | - | -
    parent | 01e4ee17f1b2903db05607419b4a713d72df80c90b4510b83a60b9135323f5e7
    hash | a6863b3ebf06bded0c0d93ebd416e74ef2f4df96b69cb070206a2d39592f3316
    Relationship | author | - | - | Author | books | 1 | 1 | -
    Attribute | cover | - | - | 1800 | - | -
    Attribute | isBlackAndWhite | - | - | 800 | - | -
    Relationship | pages | - | - | Page | book | 10000 | 1 | -
    DerivedAttribute | pagesCount | optional,readOnly | - | 300 | - | count:(pages)
    Attribute | price | - | - | 400 | - | -
    Attribute | publishedAt | - | - | 900 | - | -
    Attribute | title | - | - | 700 | - | -
    Attribute | uniqueID | - | - | 1100 | - | -
  entity | mincount | GraphicNovel | - | - | -
    parent | 01e4ee17f1b2903db05607419b4a713d72df80c90b4510b83a60b9135323f5e7
    hash | a6863b3ebf06bded0c0d93ebd416e74ef2f4df96b69cb070206a2d39592f3316
    Relationship | author | - | - | Author | books | 1 | 1 | -
    Attribute | cover | - | - | 1800 | - | -
    Attribute | isBlackAndWhite | - | - | 800 | - | -
    Relationship | pages | - | - | Page | book | 10000 | 1 | -
    DerivedAttribute | pagesCount | optional,readOnly | - | 300 | - | count:(pages)
    Attribute | price | - | - | 400 | - | -
    Attribute | publishedAt | - | - | 900 | - | -
    Attribute | title | - | - | 700 | - | -
    Attribute | uniqueID | - | - | 1100 | - | -
  entity | fetched | Author | - | - | alias
    parent | d54efab5d39cb3f59df8018db5e4cb2912ced49ca0fdebb029a326cd70847b25
    hash | 07b88ab76fbdf3d701c85688e9b0820f0cdae6bc2c31d24d1fdc115251d13d12
    Attribute | age | - | - | 100 | - | -
    Attribute | alias | - | - | 700 | - | -
    Relationship | books | optional | - | Book | author | -1 | 0 | -
    FetchedProperty | favFeedbacks | optional,transient,readOnly | -
    FetchedProperty | feedbacks | optional,transient,readOnly | -
    Attribute | siteURL | optional | - | 1200 | - | -
  entity | abstract | Writer | abstract | - | -
    parent | -
    hash | d54efab5d39cb3f59df8018db5e4cb2912ced49ca0fdebb029a326cd70847b25
    Attribute | age | - | - | 100 | - | -
  entity | external | Review | - | - | -
    parent | -
    hash | fce6c13c782a651478e99a5678e5f22d460caa3b558baee459f98095a70e1051
    Attribute | bodyText | optional | - | 700 | - | -
    Attribute | creationDate | optional | - | 900 | - | -
    Attribute | imageData | optional | - | 1000 | external | -
    Attribute | lastModificationDate | optional | - | 900 | - | -
    Attribute | score | optional | - | 500 | - | -
    Attribute | title | optional | - | 700 | - | -
  entity | propmod | BookmarkEntity | - | - | -
    parent | -
    hash | 99d650930f7e484410207feedd129b42f5e7acff83ab6a9bf61b9a6d88bdd382
    Relationship | children | optional | - | BookmarkEntity | parent | 0 | 0 | ordered
    Relationship | favoriteFolder | optional | - | BookmarkEntity | favorites | 1 | 0 | -
    Relationship | favorites | optional | - | BookmarkEntity | favoriteFolder | 0 | 0 | ordered
    Attribute | isFavorite | - | - | 800 | - | -
    Attribute | isFolder | - | - | 800 | - | -
    Relationship | parent | optional | - | BookmarkEntity | children | 1 | 0 | -
    Attribute | title | optional | - | 700 | - | -
    Attribute | url | optional | 2 | 700 | - | -
    Attribute | uuid | - | 2 | 700 | - | -
  entity | selfinverse | Person | - | 11066 | -
    parent | -
    hash | 660167c5a8b78c0439d3a82c1287fed8ef61c4f280897a1d2882d680abaf89f3
    Attribute | ageType | - | - | 100 | - | -
    Relationship | associatedFaceGroup | optional | - | DetectedFaceGroup | associatedPerson | 1 | 0 | -
    Attribute | cloudDeleteState | - | - | 100 | preserveOnDeletion | -
    Attribute | cloudLocalState | - | - | 100 | - | -
    Attribute | cloudVerifiedType | optional | - | 200 | - | -
    Relationship | clusterRejectedFaces | optional | - | DetectedFace | clusterRejectedPersons | 0 | 0 | -
    Attribute | contactMatchingDictionary | optional | - | 1800 | - | -
    Relationship | detectedFaces | optional | - | DetectedFace | person | 0 | 0 | -
    Attribute | displayName | optional | - | 700 | - | -
    Attribute | faceCount | - | 2016113001 | 200 | - | -
    Relationship | faceCrops | optional | - | FaceCrop | person | 0 | 0 | -
    Attribute | fullName | optional | - | 700 | - | -
    Attribute | genderType | - | - | 100 | - | -
    Attribute | inPersonNamingModel | - | - | 800 | - | -
    Relationship | invalidMergeCandidates | optional | - | Person | =self | 0 | 0 | -
    Relationship | keyFace | optional | - | DetectedFace | personBeingKeyFace | 1 | 0 | -
    Attribute | keyFacePickSource | - | - | 100 | - | -
    Attribute | manualOrder | - | - | 200 | - | -
    Relationship | mergeCandidates | optional | - | Person | =self | 0 | 0 | -
    Relationship | mergeSourcePersons | optional | - | Person | mergeTargetPerson | 0 | 0 | -
    Relationship | mergeTargetPerson | optional | - | Person | mergeSourcePersons | 1 | 0 | -
    Relationship | personReferences | optional | - | PersonReference | person | 0 | 0 | -
    Attribute | personUUID | optional | - | 700 | preserveOnDeletion | -
    Attribute | personUri | optional | - | 700 | - | -
    Attribute | questionType | - | - | 100 | - | -
    Relationship | rejectedFaces | optional | - | DetectedFace | rejectedPersons | 0 | 0 | -
    Relationship | rejectedFacesNeedingFaceCrops | optional | - | DetectedFace | rejectedPersonsNeedingFaceCrops | 0 | 0 | -
    Attribute | type | - | 2016092101 | 200 | - | -
    Attribute | verifiedType | - | - | 200 | - | -
  entity | entmod | SceneClassification | - | radar35318904 | -
    parent | -
    hash | 08d353e54e67dc0aa9b113bd541136aad0a5b7a15cd94b0d01ee8aa203214e1b
    Relationship | assetAttributes | optional | - | AdditionalAssetAttributes | sceneClassifications | 1 | 0 | -
    Attribute | confidence | - | - | 500 | - | -
    Attribute | sceneIdentifier | - | radar35184237,35318904 | 200 | - | -
  entity | unique2 | GraphLabel | - | - | code;alias
    parent | -
    hash | 201e820c6a7a72d7eed9cc9f2f911973e2b3187be0184b2f49b7ab9efd635190
    Attribute | alias | optional | - | 700 | - | -
    Attribute | code | optional | - | 200 | - | -
    Attribute | edgeExternalIdentifierDataHavingLabel | optional | - | 1000 | - | -
    Attribute | nodeExternalIdentifierDataHavingLabel | optional | - | 1000 | - | -
  """#
